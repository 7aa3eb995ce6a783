/** The words of the panel in German, Spanish and French. Sites override them in `i18n/LOCALE/code.json`. */

const LOCALES = ['de', 'es', 'fr'];

/** Returns the words for a locale such as `de` or `de-AT`, by their ids; none for English. */
export function readTranslations(locale: string): Record<string, string> {
  const at = LOCALES.indexOf(locale.split('-')[0]?.toLowerCase() ?? '');
  return at < 0
    ? {}
    : Object.fromEntries(
        Object.entries(ROWS).map(([id, words]) => [`theme.robotutor.${id}`, words[at] as string]),
      );
}

/** The words in the order of `LOCALES`. */
const ROWS: Record<string, [string, string, string]> = {
  'copy.answerRefused': [
    'Dein Browser hat das Kopieren nicht erlaubt. Markiere den Text und kopiere ihn selbst.',
    'Tu navegador no ha permitido copiar. Selecciona el texto y cópialo tú.',
    'Votre navigateur n’a pas autorisé la copie. Sélectionnez le texte et copiez-le vous-même.',
  ],
  'copy.answer': [
    'Kopieren',
    'Copiar',
    'Copier',
  ],
  'copy.link': [
    'Link kopieren',
    'Copiar enlace',
    'Copier le lien',
  ],
  'answer.selection': [
    'Aus deiner Auswahl',
    'De tu selección',
    'Dans votre sélection',
  ],
  'answer.closest': [
    'Nächste Stellen',
    'Pasajes más cercanos',
    'Passages les plus proches',
  ],
  'answer.says': [
    'Das Buch sagt',
    'El libro dice',
    'Le livre dit',
  ],
  'answer.readingOne': [
    'Eine Stelle wird gelesen …',
    'Leyendo un pasaje …',
    'Lecture d’un passage …',
  ],
  'answer.reading': [
    '{count} Stellen werden gelesen …',
    'Leyendo {count} pasajes …',
    'Lecture de {count} passages …',
  ],
  'answer.citation': [
    '{number}: {place}',
    '{number}: {place}',
    '{number} : {place}',
  ],
  'answer.searched': [
    'Gesucht: {question}',
    'Búsqueda: {question}',
    'Recherche : {question}',
  ],
  'answer.showing': [
    'Ergebnisse für „{question}“.',
    'Resultados para «{question}».',
    'Résultats pour « {question} ».',
  ],
  'answer.exact': [
    'Stattdessen „{question}“ suchen',
    'Buscar «{question}»',
    'Rechercher plutôt « {question} »',
  ],
  'answer.searching': [
    'Das Buch wird durchsucht …',
    'Buscando en el libro …',
    'Recherche dans le livre …',
  ],
  'answer.stillSearching': [
    'Das Buch wird noch durchsucht …',
    'Se sigue buscando en el libro …',
    'La recherche dans le livre continue …',
  ],
  'answer.writing': [
    'Die Antwort wird geschrieben …',
    'Escribiendo la respuesta …',
    'Rédaction de la réponse …',
  ],
  'answer.slow': [
    'Das dauert länger als sonst.',
    'Esto tarda más de lo normal.',
    'Cela prend plus de temps que d’habitude.',
  ],
  'answer.showPassages': [
    'Die Stellen jetzt zeigen',
    'Mostrar ya los pasajes',
    'Afficher les passages maintenant',
  ],
  'answer.sources': [
    'Hier steht das im Buch',
    'Dónde lo dice el libro',
    'Où le livre le dit',
  ],
  'answer.show': [
    'Zeigen',
    'Mostrar',
    'Afficher',
  ],
  'answer.contact': [
    'Einen Menschen fragen',
    'Preguntar a una persona',
    'Demander à une personne',
  ],
  'answer.siteSearch': [
    'Auf der Website danach suchen',
    'Buscar esto en el sitio',
    'Chercher cela sur le site',
  ],
  'answer.surrounding': [
    'Der Abschnitt darum herum',
    'La sección que lo rodea',
    'La section qui l’entoure',
  ],
  'answer.terms': [
    'Begriffe und Symbole',
    'Términos y símbolos',
    'Termes et symboles',
  ],
  'answer.near': [
    'Weitere Stellen',
    'Otros lugares',
    'Autres endroits à consulter',
  ],
  'answer.related': [
    'Diese Abschnitte können helfen',
    'Estas secciones pueden ayudar',
    'Ces sections peuvent aider',
  ],
  'answer.more': [
    'Mehr zeigen',
    'Mostrar más',
    'Afficher plus',
  ],
  'answer.less': [
    'Weniger zeigen',
    'Mostrar menos',
    'Afficher moins',
  ],
  'answer.answerAnyway': [
    'Trotzdem aus der Auswahl antworten',
    'Responder igualmente con la selección',
    'Répondre quand même à partir de la sélection',
  ],
  'answer.wholeBook': [
    'Das ganze Buch durchsuchen',
    'Buscar en todo el libro',
    'Chercher dans tout le livre',
  ],
  'answer.table': [
    'Tabelle',
    'Tabla',
    'Tableau',
  ],
  'answer.diagram': [
    'Diagramm',
    'Diagrama',
    'Diagramme',
  ],
  'copy.copied': [
    'Kopiert',
    'Copiado',
    'Copié',
  ],
  'compose.field': [
    'Frage zu diesem Buch',
    'Pregunta sobre este libro',
    'Question sur ce livre',
  ],
  'compose.hint': [
    'Frage zu diesem Buch …',
    'Pregunta sobre este libro …',
    'Question sur ce livre …',
  ],
  'compose.selectionHint': [
    'Frage zu deiner Auswahl …',
    'Pregunta sobre tu selección …',
    'Question sur votre sélection …',
  ],
  'compose.ask': [
    'Fragen',
    'Preguntar',
    'Demander',
  ],
  'compose.stop': [
    'Stopp',
    'Parar',
    'Arrêter',
  ],
  'compose.oneCharacterLeft': [
    'Noch 1 Zeichen',
    'Queda 1 carácter',
    '1 caractère restant',
  ],
  'compose.charactersLeft': [
    'Noch {count} Zeichen',
    'Quedan {count} caracteres',
    '{count} caractères restants',
  ],
  'compose.oneCharacterTooMany': [
    'Deine Frage ist 1 Zeichen zu lang.',
    'Tu pregunta tiene 1 carácter de más.',
    'Votre question a 1 caractère de trop.',
  ],
  'compose.charactersTooMany': [
    'Deine Frage ist {count} Zeichen zu lang.',
    'Tu pregunta tiene {count} caracteres de más.',
    'Votre question a {count} caractères de trop.',
  ],
  'compose.waitOneSecond': [
    'In 1 Sekunde kannst du wieder fragen.',
    'Podrás preguntar de nuevo en 1 segundo.',
    'Vous pourrez poser une autre question dans 1 seconde.',
  ],
  'compose.wait': [
    'In {seconds} Sekunden kannst du wieder fragen.',
    'Podrás preguntar de nuevo en {seconds} segundos.',
    'Vous pourrez poser une autre question dans {seconds} secondes.',
  ],
  'compose.fromSelectionCode': [
    'Aus deiner Auswahl (Code)',
    'De tu selección (código)',
    'Dans votre sélection (code)',
  ],
  'compose.fromSelectionFormula': [
    'Aus deiner Auswahl (Formel)',
    'De tu selección (fórmula)',
    'Dans votre sélection (formule)',
  ],
  'compose.fromSelectionOneWord': [
    'Aus deiner Auswahl (1 Wort)',
    'De tu selección (1 palabra)',
    'Dans votre sélection (1 mot)',
  ],
  'compose.fromSelection': [
    'Aus deiner Auswahl ({words} Wörter)',
    'De tu selección ({words} palabras)',
    'Dans votre sélection ({words} mots)',
  ],
  'compose.remove': [
    'entfernen',
    'quitar',
    'retirer',
  ],
  'compose.removeSelection': [
    'entfernen: deine Auswahl',
    'quitar tu selección',
    'retirer votre sélection',
  ],
  'compose.selectedText': [
    'Deine Auswahl',
    'Tu selección',
    'Votre sélection',
  ],
  'compose.scope': [
    'Suchen in',
    'Buscar en',
    'Chercher dans',
  ],
  'rating.question': [
    'War das hilfreich?',
    '¿Te ha ayudado?',
    'Cela vous a aidé ?',
  ],
  'rating.yes': [
    'Ja',
    'Sí',
    'Oui',
  ],
  'rating.no': [
    'Nein',
    'No',
    'Non',
  ],
  'rating.missing': [
    'Was hat gefehlt? (freiwillig)',
    '¿Qué ha faltado? (opcional)',
    'Que manquait-il ? (facultatif)',
  ],
  'rating.send': [
    'Senden',
    'Enviar',
    'Envoyer',
  ],
  'rating.thanks': [
    'Danke.',
    'Gracias.',
    'Merci.',
  ],
  'rating.notSent': [
    'Das konnte nicht gesendet werden. Versuche es später noch einmal.',
    'No se ha podido enviar. Inténtalo más tarde.',
    'L’envoi a échoué. Réessayez plus tard.',
  ],
  'outcome.stopped': [
    'Angehalten.',
    'Detenido.',
    'Arrêté.',
  ],
  'outcome.cutOff': [
    'Die Antwort ist abgebrochen.',
    'La respuesta se ha cortado.',
    'La réponse a été coupée.',
  ],
  'outcome.closestInSelection': [
    'Deine Auswahl beantwortet das vielleicht nicht. Dieser Teil kommt dem am nächsten.',
    'Puede que tu selección no responda a esto. Esta parte es la más cercana.',
    'Votre sélection n’y répond peut-être pas. Cette partie s’en approche le plus.',
  ],
  'outcome.closestOnPage': [
    'Diese Seite scheint das nicht direkt zu beantworten.',
    'Esta página no parece responder directamente a esto.',
    'Cette page ne semble pas y répondre directement.',
  ],
  'outcome.closestInModule': [
    'Dieses Modul scheint das nicht direkt zu beantworten.',
    'Este módulo no parece responder directamente a esto.',
    'Ce module ne semble pas y répondre directement.',
  ],
  'outcome.closest': [
    'Das Buch scheint das nicht direkt zu beantworten.',
    'El libro no parece responder directamente a esto.',
    'Le livre ne semble pas y répondre directement.',
  ],
  'outcome.notInSelection': [
    'Deine Auswahl beantwortet das nicht.',
    'Tu selección no responde a esto.',
    'Votre sélection n’y répond pas.',
  ],
  'outcome.declined': [
    'In diesen Stellen habe ich keine Antwort gefunden.',
    'No he encontrado una respuesta en estos pasajes.',
    'Je n’ai pas trouvé de réponse dans ces passages.',
  ],
  'outcome.notOnPage': [
    'Diese Seite behandelt das nicht.',
    'Esta página no trata esto.',
    'Cette page n’en parle pas.',
  ],
  'outcome.notInModule': [
    'Dieses Modul behandelt das nicht.',
    'Este módulo no trata esto.',
    'Ce module n’en parle pas.',
  ],
  'outcome.notCovered': [
    'Das Buch behandelt das nicht.',
    'El libro no trata esto.',
    'Le livre n’en parle pas.',
  ],
  'outcome.retry': [
    'Noch einmal versuchen',
    'Intentar de nuevo',
    'Réessayer',
  ],
  'copyPage.missing': [
    'Diese Seite gibt es nicht als Markdown.',
    'Esta página no está disponible en Markdown.',
    'Cette page n’existe pas en Markdown.',
  ],
  'copyPage.copy': [
    'Seite als Markdown kopieren',
    'Copiar la página como Markdown',
    'Copier la page en Markdown',
  ],
  'copyPage.failed': [
    'Dein Browser hat das Kopieren nicht erlaubt.',
    'Tu navegador no ha permitido copiar.',
    'Votre navigateur n’a pas autorisé la copie.',
  ],
  'copyPage.open': [
    'Die Markdown-Datei öffnen',
    'Abrir el archivo Markdown',
    'Ouvrir le fichier Markdown',
  ],
  'copyPage.more': [
    'Die Seite anders verwenden',
    'Otras formas de usar esta página',
    'Autres façons d’utiliser cette page',
  ],
  'copyPage.view': [
    'Als Markdown ansehen',
    'Ver como Markdown',
    'Voir en Markdown',
  ],
  'copyPage.openIn': [
    'In {name} öffnen',
    'Abrir en {name}',
    'Ouvrir dans {name}',
  ],
  'copyPage.prompt': [
    'Lies {url} und beantworte meine Fragen dazu.',
    'Lee {url} y responde a mis preguntas sobre ello.',
    'Lis {url} et réponds à mes questions à ce sujet.',
  ],
  'copyPage.connect': [
    'Dieses Buch verbinden',
    'Conectar este libro',
    'Connecter ce livre',
  ],
  'copyPage.connectTo': [
    'Mit {name} verbinden',
    'Conectar con {name}',
    'Connecter à {name}',
  ],
  'copyPage.command': [
    'Den Befehl für Claude Code kopieren',
    'Copiar la orden para Claude Code',
    'Copier la commande pour Claude Code',
  ],
  'panel.open': [
    '{name} fragen',
    'Preguntar a {name}',
    'Demander à {name}',
  ],
  'panel.loadFailed': [
    '{name} konnte nicht geladen werden. Prüfe deine Verbindung und versuche es noch einmal.',
    'No se ha podido cargar {name}. Comprueba tu conexión e inténtalo de nuevo.',
    '{name} n’a pas pu être chargé. Vérifiez votre connexion et réessayez.',
  ],
  'panel.crashed': [
    '{name} hat ein Problem. Lade die Seite neu, um weiterzumachen.',
    '{name} tiene un problema. Recarga la página para continuar.',
    '{name} a un problème. Rechargez la page pour continuer.',
  ],
  'panel.clear': [
    'Neues Gespräch',
    'Nueva conversación',
    'Nouvelle conversation',
  ],
  'panel.close': [
    'Schließen',
    'Cerrar',
    'Fermer',
  ],
  'panel.intro': [
    '{name} antwortet aus diesem Buch und zeigt dir, wo es steht.',
    '{name} responde con este libro y te muestra dónde lo dice.',
    '{name} répond à partir de ce livre et vous montre où il le dit.',
  ],
  'panel.greeting': [
    'Hallo. Frag mich etwas zu diesem Buch, oder markiere eine Stelle und frage danach.',
    'Hola. Pregúntame algo sobre este libro, o selecciona un pasaje y pregunta por él.',
    'Bonjour. Posez-moi une question sur ce livre, ou sélectionnez un passage et interrogez-moi dessus.',
  ],
  'panel.suggestions': [
    'Du könntest fragen',
    'Podrías preguntar',
    'Vous pourriez demander',
  ],
  'panel.suggestion': [
    'Was sagt diese Seite über „{heading}“?',
    '¿Qué dice esta página sobre «{heading}»?',
    'Que dit cette page sur « {heading} » ?',
  ],
  'panel.followUps': [
    'Du könntest auch fragen',
    'También podrías preguntar',
    'Vous pourriez aussi demander',
  ],
  'panel.bookSuggestion': [
    'Was sagt das Buch über „{title}“?',
    '¿Qué dice el libro sobre «{title}»?',
    'Que dit le livre sur « {title} » ?',
  ],
  'panel.cleared': [
    'Das Gespräch wurde entfernt.',
    'Se ha eliminado la conversación.',
    'La conversation a été supprimée.',
  ],
  'panel.undo': [
    'Rückgängig',
    'Deshacer',
    'Annuler',
  ],
  'panel.back': [
    'Zurück zur Antwort',
    'Volver a la respuesta',
    'Revenir à la réponse',
  ],
  'panel.smallPrint': [
    'Antworten können falsch sein. Folge den Links, um sie zu prüfen.',
    'Las respuestas pueden ser erróneas. Sigue los enlaces para comprobarlas.',
    'Les réponses peuvent être fausses. Suivez les liens pour vérifier.',
  ],
  'panel.latest': [
    'Zum Neuesten',
    'Ir a lo último',
    'Aller au plus récent',
  ],
  'panel.conversation': [
    'Gespräch',
    'Conversación',
    'Conversation',
  ],
  'panel.scope.book': [
    'Ganzes Buch',
    'Todo el libro',
    'Tout le livre',
  ],
  'panel.scope.module': [
    'Dieses Modul',
    'Este módulo',
    'Ce module',
  ],
  'panel.scope.page': [
    'Diese Seite',
    'Esta página',
    'Cette page',
  ],
  'panel.search': [
    'Im Buch suchen',
    'Buscar en el libro',
    'Chercher dans le livre',
  ],
  'panel.firstPage': [
    'Zur ersten Seite des Buchs',
    'Ir a la primera página del libro',
    'Aller à la première page du livre',
  ],
  'panel.said.answered': [
    'Die Antwort ist da.',
    'La respuesta está aquí.',
    'La réponse est là.',
  ],
  'panel.said.highlighted': [
    'Die Stelle ist auf der Seite hervorgehoben.',
    'El pasaje está resaltado en la página.',
    'Le passage est surligné dans la page.',
  ],
  'panel.said.section': [
    'Die Seite zeigt diesen Abschnitt.',
    'La página muestra esta sección.',
    'La page montre cette section.',
  ],
  'panel.said.page': [
    'Die Seite ist offen.',
    'La página está abierta.',
    'La page est ouverte.',
  ],
  'selection.ask': [
    'Danach fragen',
    'Preguntar por esto',
    'Demander à ce sujet',
  ],
  'problem.down': [
    '{name} ist gerade nicht verfügbar. Das Buch funktioniert wie sonst.',
    '{name} no está disponible ahora. El libro funciona como siempre.',
    '{name} n’est pas disponible pour le moment. Le livre fonctionne comme d’habitude.',
  ],
  'problem.notAllowed': [
    '{name} ist für diese Website noch nicht eingerichtet. Das Buch funktioniert wie sonst.',
    '{name} aún no está configurado para este sitio. El libro funciona como siempre.',
    '{name} n’est pas encore configuré pour ce site. Le livre fonctionne comme d’habitude.',
  ],
  'problem.versions': [
    'Diese Seite und {name} passen nicht zusammen. Lade die Seite neu.',
    'Esta página y {name} no encajan. Recarga la página.',
    'Cette page et {name} ne vont pas ensemble. Rechargez la page.',
  ],
  'problem.tooSlow': [
    'Das hat zu lange gedauert. Versuche es noch einmal.',
    'Ha tardado demasiado. Inténtalo de nuevo.',
    'Cela a pris trop de temps. Réessayez.',
  ],
  'problem.unreadable': [
    '{name} konnte diese Frage nicht lesen. Stelle sie mit anderen Worten.',
    '{name} no ha podido leer esta pregunta. Hazla con otras palabras.',
    '{name} n’a pas pu lire cette question. Posez-la autrement.',
  ],
  'problem.selectionUnreadable': [
    '{name} konnte deine Auswahl nicht lesen. Markiere die Stelle noch einmal.',
    '{name} no ha podido leer tu selección. Selecciona el pasaje de nuevo.',
    '{name} n’a pas pu lire votre sélection. Sélectionnez de nouveau le passage.',
  ],
  'problem.questionTooLong': [
    'Diese Frage ist zu lang. Stelle eine kürzere.',
    'Esta pregunta es demasiado larga. Haz una más corta.',
    'Cette question est trop longue. Posez-en une plus courte.',
  ],
  'problem.selectionTooLong': [
    'Deine Auswahl ist zu lang. Markiere eine kürzere Stelle.',
    'Tu selección es demasiado larga. Selecciona un pasaje más corto.',
    'Votre sélection est trop longue. Sélectionnez un passage plus court.',
  ],
  'problem.tooLong': [
    'Das ist zu lang. Stelle eine kürzere Frage oder markiere eine kürzere Stelle.',
    'Es demasiado largo. Haz una pregunta más corta o selecciona un pasaje más corto.',
    'C’est trop long. Posez une question plus courte ou sélectionnez un passage plus court.',
  ],
  'problem.failed': [
    '{name} konnte diesmal nicht antworten. Versuche es noch einmal.',
    '{name} no ha podido responder esta vez. Inténtalo de nuevo.',
    '{name} n’a pas pu répondre cette fois. Réessayez.',
  ],
  'problem.tooManyBefore': [
    'Das waren viele Fragen. Du kannst jetzt wieder fragen.',
    'Han sido muchas preguntas. Ya puedes volver a preguntar.',
    'Cela faisait beaucoup de questions. Vous pouvez en poser d’autres.',
  ],
  'problem.tooManyOneSecond': [
    'Das waren viele Fragen. Versuche es in 1 Sekunde noch einmal.',
    'Han sido muchas preguntas. Inténtalo de nuevo en 1 segundo.',
    'Cela faisait beaucoup de questions. Réessayez dans 1 seconde.',
  ],
  'problem.tooManySeconds': [
    'Das waren viele Fragen. Versuche es in {seconds} Sekunden noch einmal.',
    'Han sido muchas preguntas. Inténtalo de nuevo en {seconds} segundos.',
    'Cela faisait beaucoup de questions. Réessayez dans {seconds} secondes.',
  ],
  'outcome.selectionWithoutService': [
    'Hier kann nur das ganze Buch durchsucht werden, keine Auswahl.',
    'Aquí solo se puede buscar en todo el libro, no en una selección.',
    'Ici, la recherche porte sur tout le livre, et non sur une sélection.',
  ],
  'problem.indexVersion': [
    'Der Suchindex passt nicht zu dieser Seite. Lade die Seite neu, oder versuche es später noch einmal.',
    'El índice de búsqueda no encaja con esta página. Recarga la página o inténtalo más tarde.',
    'L’index de recherche ne correspond pas à cette page. Rechargez la page, ou réessayez plus tard.',
  ],
  'problem.indexMissing': [
    'Der Suchindex konnte nicht geladen werden. Prüfe deine Verbindung und versuche es noch einmal.',
    'No se ha podido cargar el índice de búsqueda. Comprueba tu conexión e inténtalo de nuevo.',
    'L’index de recherche n’a pas pu être chargé. Vérifiez votre connexion et réessayez.',
  ],
  'problem.searchBlocked': [
    'Dein Browser lässt {name} auf dieser Seite nicht suchen. Das Buch funktioniert wie sonst.',
    'Tu navegador no deja que {name} busque en esta página. El libro funciona como siempre.',
    'Votre navigateur ne laisse pas {name} chercher sur cette page. Le livre fonctionne comme d’habitude.',
  ],
};
