"""Questions to a technical book in other languages, some of them without accents."""

# ruff: noqa: RUF001  # the letters of other scripts look like Latin letters

from __future__ import annotations

from typing import Final

FOREIGN: Final = {
    "German": """
Was ist ein URDF?
Was bedeutet ZMP?
Wie funktioniert ein PID-Regler?
Wie starte ich Gazebo?
Warum driftet das Gyroskop?
Welche Sensoren braucht ein humanoider Roboter?
Was ist der Unterschied zwischen einem Topic und einem Service?
Wie installiere ich ROS 2 auf Ubuntu?
Erkläre mir die inverse Kinematik.
Wozu dient ein Launch-File?
Wie kann ich die Kamera kalibrieren?
Wann sollte ich Isaac Sim statt Gazebo verwenden?
Zeig mir ein Beispiel für einen Publisher in Python
Wie groß darf die Verzögerung sein?
Wer hat ROS entwickelt?
Was passiert, wenn ein Node abstürzt?
Kann ich mehrere Roboter gleichzeitig simulieren?
Wie berechnet man das Drehmoment im Knie?
Was ist der Nullmomentpunkt?
Muss ich den Controller neu starten?
Wie schnell ist der Lidar?
wie messe ich die masse eines arms
Warum fällt mein Roboter um?
Gibt es ein Beispiel mit nav2?
Wo finde ich die Logdateien?
Welcher Planer ist besser, A* oder RRT?
Wie werden Quaternionen normalisiert?
Was macht der Befehl colcon build?
Brauche ich eine GPU für das Training?
Hat die IMU einen Bias?
""",
    "French": """
Qu'est-ce qu'un URDF ?
C'est quoi ROS 2 ?
Comment fonctionne un régulateur PID ?
Comment lancer Gazebo ?
Pourquoi le gyroscope dérive-t-il ?
Quels capteurs faut-il pour un robot humanoïde ?
Quelle est la différence entre un topic et un service ?
Comment installer ROS 2 sur Ubuntu ?
Explique-moi la cinématique inverse.
À quoi sert un fichier launch ?
Comment calibrer la caméra ?
Quand utiliser Isaac Sim ?
Montre-moi un exemple de publisher en Python
Que signifie ZMP ?
Combien de moteurs a un bras ?
Que se passe-t-il si un nœud plante ?
Peut-on simuler plusieurs robots ?
Comment calculer le couple du genou ?
Est-ce que le robot peut tomber ?
Faut-il redémarrer le contrôleur ?
Quelle est la vitesse du lidar ?
comment mesurer la masse d'un bras
Pourquoi mon robot tombe ?
Y a-t-il un exemple avec nav2 ?
Où sont les fichiers de log ?
Quel planificateur est le meilleur, A* ou RRT ?
Comment normaliser un quaternion ?
Que fait la commande colcon build ?
Ai-je besoin d'un GPU pour l'entraînement ?
Qui a créé ROS ?
""",
    "Spanish": """
¿Qué es un URDF?
Que es ROS 2
¿Cómo funciona un controlador PID?
¿Cómo inicio Gazebo?
¿Por qué deriva el giroscopio?
¿Qué sensores necesita un robot humanoide?
¿Cuál es la diferencia entre un topic y un servicio?
¿Cómo instalo ROS 2 en Ubuntu?
Explica la cinemática inversa
¿Para qué sirve un archivo launch?
¿Cómo calibro la cámara?
¿Cuándo debo usar Isaac Sim?
Muéstrame un ejemplo de un publisher en Python
¿Qué significa ZMP?
¿Cuántos motores tiene un brazo?
¿Qué pasa si un nodo falla?
¿Se pueden simular varios robots?
¿Cómo se calcula el par de la rodilla?
¿Qué es el punto de momento cero?
¿Tengo que reiniciar el controlador?
¿Cuál es la velocidad del lidar?
como mido la masa de un brazo
¿Por qué se cae mi robot?
¿Hay un ejemplo con nav2?
¿Dónde están los archivos de log?
¿Cuál es mejor, A* o RRT?
¿Cómo se normaliza un cuaternión?
¿Qué hace el comando colcon build?
¿Necesito una GPU para el entrenamiento?
¿Quién creó ROS?
""",
    "Italian": """
Che cos'è un URDF?
Cos'è ROS 2?
Come funziona un controllore PID?
Come avvio Gazebo?
Perché il giroscopio deriva?
Quali sensori servono a un robot umanoide?
Qual è la differenza tra un topic e un servizio?
Come installo ROS 2 su Ubuntu?
Spiega la cinematica inversa
A cosa serve un file di launch?
Come si calibra la telecamera?
Quando devo usare Isaac Sim?
Mostrami un esempio di publisher in Python
Cosa significa ZMP?
Quanti motori ha un braccio?
Cosa succede se un nodo si blocca?
Si possono simulare più robot?
Come si calcola la coppia del ginocchio?
Che cos'è il punto di momento zero?
Devo riavviare il controller?
Quanto è veloce il lidar?
come misuro la massa di un braccio
Perché il mio robot cade?
C'è un esempio con nav2?
Dove sono i file di log?
Quale è meglio, A* o RRT?
Come si normalizza un quaternione?
Che cosa fa il comando colcon build?
Ho bisogno di una GPU per l'addestramento?
Chi ha creato ROS?
""",
    "Portuguese": """
O que é um URDF?
O que é ROS 2?
Como funciona um controlador PID?
Como eu inicio o Gazebo?
Por que o giroscópio deriva?
Quais sensores um robô humanoide precisa?
Qual é a diferença entre um tópico e um serviço?
Como instalo o ROS 2 no Ubuntu?
Explique a cinemática inversa
Para que serve um arquivo launch?
Como calibro a câmera?
Quando devo usar o Isaac Sim?
Mostre um exemplo de publisher em Python
O que significa ZMP?
Quantos motores tem um braço?
O que acontece se um nó falhar?
É possível simular vários robôs?
Como se calcula o torque do joelho?
O que é o ponto de momento zero?
Preciso reiniciar o controlador?
Qual é a velocidade do lidar?
como meço a massa de um braço
Por que o meu robô cai?
Há um exemplo com nav2?
Onde estão os arquivos de log?
Qual é melhor, A* ou RRT?
Como normalizar um quaternion?
O que faz o comando colcon build?
Preciso de uma GPU para o treinamento?
Quem criou o ROS?
""",
    "Dutch": """
Wat is een URDF?
Wat betekent ZMP?
Hoe werkt een PID-regelaar?
Hoe start ik Gazebo?
Waarom drijft de gyroscoop af?
Welke sensoren heeft een humanoïde robot nodig?
Wat is het verschil tussen een topic en een service?
Hoe installeer ik ROS 2 op Ubuntu?
Leg de inverse kinematica uit
Waar dient een launchbestand voor?
Hoe kalibreer ik de camera?
Wanneer moet ik Isaac Sim gebruiken?
Geef een voorbeeld van een publisher in Python
Hoeveel motoren heeft een arm?
Wat gebeurt er als een node crasht?
Kan ik meerdere robots simuleren?
Hoe bereken je het koppel van de knie?
Wat is het nulmomentpunt?
Moet ik de controller herstarten?
Hoe snel is de lidar?
hoe meet ik de massa van een arm
Waarom valt mijn robot om?
Is er een voorbeeld met nav2?
Waar staan de logbestanden?
Welke is beter, A* of RRT?
Hoe normaliseer je een quaternion?
Wat doet het commando colcon build?
Heb ik een GPU nodig voor de training?
Wie heeft ROS gemaakt?
Wat zijn de onderdelen van een humanoïde?
""",
    "Urdu or Hindi": """
ROS kya hai?
URDF kya hota hai
PID controller kaise kaam karta hai?
Gazebo kaise start karein?
Robot kyun girta hai?
Topic aur service mein kya farq hai?
ROS 2 ko Ubuntu par kaise install karte hain?
Inverse kinematics samjhao mujhe
Launch file ka kya kaam hai?
Camera ko calibrate kaise karna hai
ZMP ka matlab kya hai?
Gyro mein drift kyon hota hai?
Lidar aur camera mein se kaun behtar hai
Mujhe publisher ka example batao
Quaternion kya hota hai?
Isaac Sim kab use karna chahiye aur kyun
Simulation ke liye GPU ki zarurat hai kya
Node crash ho jaye to kya karein
Torque kaise calculate karte hain
Humanoid robot ke kitne joints hote hain?
IMU ka bias kya hai
Nav2 mein planner kaise change karein
colcon build kya karta hai
Ye error kyun aa raha hai?
Robot ko chalna kaise sikhate hain
Sensor fusion ka matlab batao
Digital twin kya hai
VLA model kaise kaam karte hain
Kya ROS free hai?
Controller ko restart karna hai ya nahi
""",
}
"""Thirty questions of each language in Latin letters."""

OTHER_SCRIPTS: Final = {
    "Russian": "Что такое URDF?\nКак работает ПИД-регулятор в ROS 2?\nПочему робот падает?",
    "Ukrainian": "Що таке інерція?\nЯк запустити Gazebo і чому він повільний?",
    "Arabic": "ما هو URDF؟\nكيف يعمل الروبوت؟",
    "Urdu": "روبوٹ کیسے کام کرتا ہے؟\nROS کیا ہے؟",
    "Persian": "چگونه ربات راه می‌رود؟",
    "Hindi": "ROS क्या है?\nरोबोट कैसे चलता है?",
    "Chinese": "什么是URDF?\nROS 2 是什么?\n如何校准相机?",
    "Japanese": "URDFとは何ですか?\nロボットはどのように歩きますか?",
    "Korean": "URDF가 무엇인가요?\n로봇은 어떻게 걷나요?",
    "Greek": "Τι είναι το URDF;",
    "Thai": "URDF คืออะไร",
}
"""Some questions of each language in other scripts."""
