"""The voice of the assistant: its name, what it calls its source, and its sentences by language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.answering.models import Answer, Notice

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings

LANGUAGES: Final = ("en", "de", "es", "fr")

_SOURCES: Final = {
    "book": {"en": "the book", "de": "das Buch", "es": "el libro", "fr": "le livre"},
    "textbook": {"en": "the textbook", "de": "das Lehrbuch", "es": "el libro", "fr": "le manuel"},
    "documentation": {
        "en": "the documentation",
        "de": "die Dokumentation",
        "es": "la documentación",
        "fr": "la documentation",
    },
    "handbook": {"en": "the handbook", "de": "das Handbuch", "es": "el manual", "fr": "le guide"},
    "manual": {"en": "the manual", "de": "das Handbuch", "es": "el manual", "fr": "le manuel"},
    "guide": {"en": "the guide", "de": "der Leitfaden", "es": "la guía", "fr": "le guide"},
}
"""Common names of a source with their articles, as the subject of a sentence."""

SENTENCES: Final[dict[str, dict[str, str]]] = {
    "no_passages": {
        "en": "{Source} has no passage about this.",
        "de": "{Source} sagt nichts dazu.",
        "es": "{Source} no dice nada sobre esto.",
        "fr": "{Source} n'en parle pas.",
    },
    "not_covered": {
        "en": "{Source} does not cover this.",
        "de": "{Source} behandelt das nicht.",
        "es": "{Source} no trata esto.",
        "fr": "{Source} ne traite pas ce sujet.",
    },
    "closest": {
        "en": "{Source} does not seem to answer this directly. The closest passages are:",
        "de": "{Source} scheint das nicht direkt zu beantworten. Diese Stellen kommen am nächsten:",
        "es": "{Source} no parece responder a esto directamente. Los pasajes más cercanos son:",
        "fr": "{Source} ne semble pas y répondre directement. Les passages les plus proches :",
    },
    "mentioned": {
        "en": "{Source} mentions this but does not seem to explain it:",
        "de": "{Source} erwähnt das, scheint es aber nicht zu erklären:",
        "es": "{Source} lo menciona, pero no parece explicarlo:",
        "fr": "{Source} le mentionne, mais ne semble pas l'expliquer :",
    },
    "no_words": {
        "en": "I find no word here that {source} knows. Ask a question about it in other words.",
        "de": "Keines dieser Wörter kommt dort vor. Bitte mit anderen Wörtern fragen.",
        "es": "Ninguna de estas palabras aparece en la fuente. Pregunte con otras palabras.",
        "fr": "Aucun de ces mots ne figure dans la source. Posez la question autrement.",
    },
    "sections": {
        "en": "{place} has these sections: {names}.",
        "de": "{place} hat diese Abschnitte: {names}.",
        "es": "{place} tiene estas secciones: {names}.",
        "fr": "{place} a ces sections : {names}.",
    },
    "book_size": {
        "en": "{Source} has {counts}.",
        "de": "Umfang: {counts}.",
        "es": "Contenido: {counts}.",
        "fr": "Contenu : {counts}.",
    },
    "book_subject": {
        "en": "{Source} has {count} pages. These are its parts:",
        "de": "Insgesamt {count} Seiten. Das sind die Teile:",
        "es": "En total {count} páginas. Estas son las partes:",
        "fr": "En tout {count} pages. Voici les parties :",
    },
    "book_start": {
        "en": "{Source} begins here:",
        "de": "Hier ist der Anfang:",
        "es": "Empiece aquí:",
        "fr": "Commencez ici :",
    },
    "book_next": {
        "en": "After {place} comes:",
        "de": "Auf {place} folgt:",
        "es": "Después de {place} viene:",
        "fr": "Après {place} vient :",
    },
    "book_previous": {
        "en": "Before {place} comes:",
        "de": "Vor {place} steht:",
        "es": "Antes de {place} viene:",
        "fr": "Avant {place} vient :",
    },
    "book_author": {
        "en": "These places may name the authors:",
        "de": "Diese Stellen nennen vielleicht die Autoren:",
        "es": "Estos lugares quizá nombren a los autores:",
        "fr": "Ces passages nomment peut-être les auteurs :",
    },
    "book_no_author": {
        "en": "{Source} has no page or section about its authors.",
        "de": "Keine Seite und kein Abschnitt handelt von den Autoren.",
        "es": "Ninguna página ni sección trata de los autores.",
        "fr": "Aucune page ni section ne parle des auteurs.",
    },
    "declined": {
        "en": "{Source} does not seem to answer this directly.",
        "de": "{Source} scheint das nicht direkt zu beantworten.",
        "es": "{Source} no parece responder a esto directamente.",
        "fr": "{Source} ne semble pas y répondre directement.",
    },
    "related": {
        "en": "Related sections:",
        "de": "Verwandte Abschnitte:",
        "es": "Secciones relacionadas:",
        "fr": "Sections voisines :",
    },
    "selection_unrelated_answer": {
        "en": "Your selection does not answer this. You can search the whole {bare}, or ask for an "
        "answer from the selection anyway.",
        "de": "Die Auswahl beantwortet das nicht. Es kann alles durchsucht oder trotzdem aus der "
        "Auswahl geantwortet werden.",
        "es": "La selección no responde a esto. Se puede buscar en todo, o pedir una respuesta de "
        "la selección de todos modos.",
        "fr": "La sélection n'y répond pas. On peut chercher partout, ou demander quand même une "
        "réponse de la sélection.",
    },
    "selection_closest": {
        "en": "Your selection may not answer this. This part of it comes closest:",
        "de": "Die Auswahl beantwortet das vielleicht nicht. Dieser Teil kommt am nächsten:",
        "es": "Puede que la selección no responda a esto. Esta parte es la más cercana:",
        "fr": "La sélection n'y répond peut-être pas. Cette partie est la plus proche :",
    },
    "selection_heading": {
        "en": "Your selection is only a heading. Select some text below it.",
        "de": "Die Auswahl ist nur eine Überschrift. Bitte Text darunter auswählen.",
        "es": "La selección es solo un título. Seleccione texto debajo.",
        "fr": "La sélection n'est qu'un titre. Sélectionnez du texte en dessous.",
    },
    "selection_declined": {
        "en": "Your selection does not answer this. Try to search the whole {bare}.",
        "de": "Die Auswahl beantwortet das nicht. Eine Suche überall kann helfen.",
        "es": "La selección no responde a esto. Intente buscar en todo.",
        "fr": "La sélection n'y répond pas. Essayez de chercher partout.",
    },
    "no_model": {
        "en": "The answer is quoted word for word.",
        "de": "Die Antwort ist wörtlich zitiert.",
        "es": "La respuesta está citada palabra por palabra.",
        "fr": "La réponse est citée mot pour mot.",
    },
    "model_unavailable": {
        "en": "The model could not answer. {Source} says:",
        "de": "Das Modell konnte nicht antworten. {Source} sagt:",
        "es": "El modelo no pudo responder. {Source} dice:",
        "fr": "Le modèle n'a pas pu répondre. {Source} dit :",
    },
    "model_declined": {
        "en": "The model found no answer in these passages. {Source} says:",
        "de": "Das Modell fand in diesen Stellen keine Antwort. {Source} sagt:",
        "es": "El modelo no encontró respuesta en estos pasajes. {Source} dice:",
        "fr": "Le modèle n'a pas trouvé de réponse dans ces passages. {Source} dit :",
    },
    "not_grounded": {
        "en": "The answer of the model could not be found in these passages. {Source} says:",
        "de": "Die Antwort des Modells steht nicht in diesen Stellen. {Source} sagt:",
        "es": "La respuesta del modelo no está en estos pasajes. {Source} dice:",
        "fr": "La réponse du modèle n'est pas dans ces passages. {Source} dit :",
    },
    "cut_off": {
        "en": "The answer was cut off.",
        "de": "Die Antwort wurde abgeschnitten.",
        "es": "La respuesta se cortó.",
        "fr": "La réponse a été coupée.",
    },
    "cut_off_quotes": {
        "en": "The answer was cut off. {Source} says:",
        "de": "Die Antwort wurde abgeschnitten. {Source} sagt:",
        "es": "La respuesta se cortó. {Source} dice:",
        "fr": "La réponse a été coupée. {Source} dit :",
    },
    "repeated": {
        "en": "The model repeated itself and was stopped.",
        "de": "Das Modell hat sich wiederholt und wurde angehalten.",
        "es": "El modelo se repitió y fue detenido.",
        "fr": "Le modèle se répétait et a été arrêté.",
    },
    "partly_declined": {
        "en": "The model found no answer to a part of the question.",
        "de": "Zu einem Teil der Frage fand das Modell keine Antwort.",
        "es": "El modelo no encontró respuesta a una parte de la pregunta.",
        "fr": "Le modèle n'a pas trouvé de réponse à une partie de la question.",
    },
    "citations_added": {
        "en": "Citations were added to {count} of the sentences.",
        "de": "Zu {count} der Sätze wurden Belege ergänzt.",
        "es": "Se añadieron citas a {count} de las frases.",
        "fr": "Des citations ont été ajoutées à {count} des phrases.",
    },
    "citations_corrected": {
        "en": "The citations of {count} of the sentences were corrected.",
        "de": "Die Belege von {count} der Sätze wurden berichtigt.",
        "es": "Se corrigieron las citas de {count} de las frases.",
        "fr": "Les citations de {count} des phrases ont été corrigées.",
    },
    "sentences_dropped": {
        "en": "Sentences that are not in the sources were left out: {count}.",
        "de": "Sätze, die nicht in den Quellen stehen, wurden weggelassen: {count}.",
        "es": "Se omitieron frases que no están en las fuentes: {count}.",
        "fr": "Des phrases absentes des sources ont été omises : {count}.",
    },
    "sentences_marked": {
        "en": "Sentences that are not in the sources are marked: {count}.",
        "de": "Sätze, die nicht in den Quellen stehen, sind markiert: {count}.",
        "es": "Las frases que no están en las fuentes están marcadas: {count}.",
        "fr": "Les phrases absentes des sources sont marquées : {count}.",
    },
    "mark": {
        "en": "not found in {source}",
        "de": "nicht belegt",
        "es": "sin fuente",
        "fr": "sans source",
    },
    "search_changed": {
        "en": 'Showing results for "{question}".',
        "de": "Ergebnisse für „{question}“.",
        "es": "Resultados de «{question}».",
        "fr": "Résultats pour « {question} ».",
    },
    "names_missing": {
        "en": "{Source} does not mention {names}.",
        "de": "{Source} erwähnt {names} nicht.",
        "es": "{Source} no menciona {names}.",
        "fr": "{Source} ne mentionne pas {names}.",
    },
    "filtered": {
        "en": "The search covered only a part of it. Ask again without filters.",
        "de": "Nur ein Teil wurde durchsucht. Bitte ohne Filter fragen.",
        "es": "La búsqueda abarcó solo una parte. Pregunte sin filtros.",
        "fr": "La recherche n'a porté que sur une partie. Reposez la question sans filtres.",
    },
    "other_language": {
        "en": "Your question seems to be in {asked}, but {source} is in {written}, so the answer "
        "may miss something. Ask again in {written} for better results.",
        "de": "Die Frage scheint in einer anderen Sprache zu sein ({asked}) als die Quelle "
        "({written}). Eine Frage in dieser Sprache findet mehr.",
        "es": "La pregunta parece estar en otro idioma ({asked}) que la fuente ({written}). En ese "
        "idioma se encuentra más.",
        "fr": "La question semble être dans une autre langue ({asked}) que la source ({written}). "
        "Dans cette langue, on trouve davantage.",
    },
    "recalled": {
        "en": 'You asked: "{question}"',
        "de": "Die Frage war: „{question}“",
        "es": "La pregunta fue: «{question}»",
        "fr": "La question était : « {question} »",
    },
    "about": {
        "en": "I answer questions from this {bare} and show you where it says so. Ask me anything "
        "about it, or select a passage and ask about it.",
        "de": "Ich beantworte Fragen aus dieser Quelle und zeige die Stellen dazu. Fragen sind "
        "willkommen, auch zu einer ausgewählten Stelle.",
        "es": "Respondo preguntas con esta fuente y muestro dónde lo dice. Pregunte lo que quiera, "
        "o seleccione un pasaje.",
        "fr": "Je réponds aux questions d'après cette source et je montre où elle le dit. Posez "
        "une question, ou sélectionnez un passage.",
    },
    "farewell": {
        "en": "Goodbye. Come back when you have a question about this {bare}.",
        "de": "Auf Wiedersehen. Bis zur nächsten Frage.",
        "es": "Adiós. Vuelva cuando tenga una pregunta.",
        "fr": "Au revoir. Revenez quand vous aurez une question.",
    },
    "thanks": {
        "en": "Glad to help. Ask me anything else about this {bare}.",
        "de": "Gern geschehen. Weitere Fragen sind willkommen.",
        "es": "Con gusto. Pregunte lo que quiera.",
        "fr": "Avec plaisir. Posez d'autres questions si vous voulez.",
    },
    "greeting": {
        "en": "Hello. Ask me anything about this {bare}, or select a passage and ask about it.",
        "de": "Hallo. Fragen sind willkommen, auch zu einer ausgewählten Stelle.",
        "es": "Hola. Pregunte lo que quiera, o seleccione un pasaje.",
        "fr": "Bonjour. Posez une question, ou sélectionnez un passage.",
    },
}
"""Each sentence of the assistant, by the code of its notice or the reason of its refusal."""


_COUNTED: Final = {
    "modules": {
        "en": ("module", "modules"),
        "de": ("Modul", "Module"),
        "es": ("módulo", "módulos"),
        "fr": ("module", "modules"),
    },
    "chapters": {
        "en": ("chapter", "chapters"),
        "de": ("Kapitel", "Kapitel"),
        "es": ("capítulo", "capítulos"),
        "fr": ("chapitre", "chapitres"),
    },
    "pages": {
        "en": ("page", "pages"),
        "de": ("Seite", "Seiten"),
        "es": ("página", "páginas"),
        "fr": ("page", "pages"),
    },
}
"""Parts of a book, one and several."""


@dataclass(frozen=True, slots=True)
class Voice:
    """How the assistant speaks, and what it keeps to itself.

    Attributes:
        source: What the source of all answers is called, such as `book` or `documentation`.
        name: Name of the assistant.
        audience: For whom it writes.
        instructions: Further instructions about style for a model.
        language: Language of its fixed sentences: en, de, es or fr.
        tells_solutions: True if it may tell the solutions of quizzes.
    """

    source: str = "book"
    name: str = "RoboTutor"
    audience: str = "a university student"
    instructions: str = ""
    language: str = "en"
    tells_solutions: bool = False

    @property
    def named_source(self) -> str:
        """The source with its article, such as "the book"."""
        known = _SOURCES.get(self.source.strip().lower())
        if known:
            return known[self.language]
        return f"the {self.source}" if self.language == "en" else self.source

    def say(self, code: str, **data: object) -> str:
        """Return a sentence in the language of the assistant."""
        source = self.named_source
        names = {"source": source, "Source": source[:1].upper() + source[1:], "bare": self.source}
        return SENTENCES[code][self.language].format(**names | data)

    def count(self, unit: str, count: int) -> str:
        """Return a number with the name of what is counted: modules, chapters or pages."""
        return f"{count} {_COUNTED[unit][self.language][count != 1]}"

    def note(self, code: str, **data: Any) -> Notice:  # noqa: ANN401  # values of JSON
        """Return a notice with its sentence."""
        return Notice(code, self.say(code, **data), data)


def read_voice(settings: Settings) -> Voice:
    """Return the voice that the settings describe."""
    return Voice(
        source=settings.assistant_source,
        name=settings.assistant_name,
        audience=settings.assistant_audience,
        instructions=settings.assistant_instructions,
        language=settings.assistant_language,
        tells_solutions=settings.assistant_tells_solutions,
    )


NOTICES: Final = (
    "no_words",
    "sections",
    "book_size",
    "book_subject",
    "book_start",
    "book_next",
    "book_previous",
    "book_author",
    "book_no_author",
    "no_model",
    "model_unavailable",
    "model_declined",
    "not_grounded",
    "cut_off",
    "repeated",
    "partly_declined",
    "citations_added",
    "citations_corrected",
    "sentences_dropped",
    "sentences_marked",
    "search_changed",
    "names_missing",
    "scope",
    "filtered",
    "filter_unknown",
    "other_language",
    "selection_unrelated",
    "selection_uncertain",
    "selection_short",
)
"""The codes of all notices."""

_FOR_OPERATORS: Final = frozenset({"citations_added", "citations_corrected"})


def list_shown(answer: Answer) -> list[Notice]:
    """Return the notices to show below an answer.

    Notices about corrected citations are for programs. The sentence of a notice that precedes the
    passages is not repeated.
    """
    return [
        notice
        for notice in answer.notices
        if notice.code not in _FOR_OPERATORS and notice.text not in answer.text
    ]
