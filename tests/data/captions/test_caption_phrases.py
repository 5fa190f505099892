"""Tests of simple captions: gender, case, endings, plurals, verb forms, prepositions."""

import pytest
from caption_notation import clause

from nmt.data.captions.english import english
from nmt.data.captions.german import german
from nmt.data.captions.trees import Clause

TABLE: list[tuple[Clause, str, str]] = [
    # Articles and endings after ein- and der-words and without article, in three cases.
    (
        clause("a young man in a red jacket", "ride", "a bicycle", "through the park"),
        "A young man in a red jacket is riding a bicycle through the park.",
        "Ein junger Mann in einer roten Jacke fährt mit dem Fahrrad durch den Park.",
    ),
    (
        clause("a elegant lady", "open", "a clean window"),
        "An elegant lady is opening a clean window.",
        "Eine elegante Dame öffnet ein sauberes Fenster.",
    ),
    (
        clause("a hungry child", "hold", "a yellow ball"),
        "A hungry child is holding a yellow ball.",
        "Ein hungriges Kind hält einen gelben Ball.",
    ),
    (
        clause("the tall worker", "carry", "the heavy basket"),
        "The tall worker is carrying the heavy basket.",
        "Der große Arbeiter trägt den schweren Korb.",
    ),
    (
        clause("the brave girl", "help", "the old man"),
        "The brave girl is helping the old man.",
        "Das mutige Mädchen hilft dem alten Mann.",
    ),
    (
        clause("the friendly nurse", "talk to", "the hungry child"),
        "The friendly nurse is talking to the hungry child.",
        "Die freundliche Krankenschwester spricht mit dem hungrigen Kind.",
    ),
    (
        clause("this strong man", "push", "a green car"),
        "This strong man is pushing a green car.",
        "Dieser starke Mann schiebt ein grünes Auto.",
    ),
    (
        clause("this young woman", "drink", "hot coffee"),
        "This young woman is drinking hot coffee.",
        "Diese junge Frau trinkt heißen Kaffee.",
    ),
    (
        clause("this child", "drink", "cold milk"),
        "This child is drinking cold milk.",
        "Dieses Kind trinkt kalte Milch.",
    ),
    (
        clause("this dog", "drink", "cold water"),
        "This dog is drinking cold water.",
        "Dieser Hund trinkt kaltes Wasser.",
    ),
    (
        clause("a man", "wash", "the old black car"),
        "A man is washing the old black car.",
        "Ein Mann wäscht das alte schwarze Auto.",
    ),
    # Stems that change before an ending, and colours that take none.
    (
        clause("the doctor", "buy", "a expensive coat"),
        "The doctor is buying an expensive coat.",
        "Der Arzt kauft einen teuren Mantel.",
    ),
    (
        clause("a cat", "climb", where="over the high fence"),
        "A cat is climbing over the high fence.",
        "Eine Katze klettert über den hohen Zaun.",
    ),
    (
        clause("a woman in a pink skirt", "walk", where="into the dark forest"),
        "A woman in a pink skirt is walking into the dark forest.",
        "Eine Frau in einem rosa Rock geht in den dunklen Wald.",
    ),
    (
        clause("a tired girl", "sleep", where="on the dark blue sofa"),
        "A tired girl is sleeping on the dark blue sofa.",
        "Ein müdes Mädchen schläft auf dem dunkelblauen Sofa.",
    ),
    # Plurals, English ones among them, and the dative in -n.
    (
        clause("two young men in red jackets", "dance", where="in front of the church"),
        "Two young men in red jackets are dancing in front of the church.",
        "Zwei junge Männer in roten Jacken tanzen vor der Kirche.",
    ),
    (
        clause("three women", "talk to", "two children"),
        "Three women are talking to two children.",
        "Drei Frauen sprechen mit zwei Kindern.",
    ),
    (
        clause("the children", "play with", "the old dolls"),
        "The children are playing with the old dolls.",
        "Die Kinder spielen mit den alten Puppen.",
    ),
    (
        clause("children", "play with", "two small dogs"),
        "Children are playing with two small dogs.",
        "Kinder spielen mit zwei kleinen Hunden.",
    ),
    (
        clause("four geese", "stand", where="between two trees"),
        "Four geese are standing between two trees.",
        "Vier Gänse stehen zwischen zwei Bäumen.",
    ),
    (
        clause("five firefighters", "sit", where="between the cars"),
        "Five firefighters are sitting between the cars.",
        "Fünf Feuerwehrleute sitzen zwischen den Autos.",
    ),
    (
        clause("several friendly women", "help", "several firefighters"),
        "Several friendly women are helping several firefighters.",
        "Mehrere freundliche Frauen helfen mehreren Feuerwehrleuten.",
    ),
    (
        clause("some boys", "thank", "some old women"),
        "Some boys are thanking some old women.",
        "Einige Jungen danken einigen alten Frauen.",
    ),
    (
        clause("many ladies", "follow", "many happy children"),
        "Many ladies are following many happy children.",
        "Viele Damen folgen vielen glücklichen Kindern.",
    ),
    (
        clause("a cook", "cut", "three fresh tomatoes"),
        "A cook is cutting three fresh tomatoes.",
        "Ein Koch schneidet drei frische Tomaten.",
    ),
    (
        clause("the waiters", "dry", "the dirty knives"),
        "The waiters are drying the dirty knives.",
        "Die Kellner trocknen die schmutzigen Messer ab.",
    ),
    (
        clause("the postmen", "greet", "two businessmen"),
        "The postmen are greeting two businessmen.",
        "Die Briefträger begrüßen zwei Geschäftsmänner.",
    ),
    # Weak masculine nouns.
    (
        clause("the boy", "help", "the boy"),
        "The boy is helping the boy.",
        "Der Junge hilft dem Jungen.",
    ),
    (
        clause("a student", "greet", "a old farmer"),
        "A student is greeting an old farmer.",
        "Ein Student begrüßt einen alten Bauern.",
    ),
    (
        clause("a lady", "talk to", "a police officer"),
        "A lady is talking to a police officer.",
        "Eine Dame spricht mit einem Polizisten.",
    ),
    (
        clause("a tourist", "photograph", "the hungry elephant"),
        "A tourist is photographing the hungry elephant.",
        "Ein Tourist fotografiert den hungrigen Elefanten.",
    ),
    (
        clause("a girl", "play with", "a teddy bear"),
        "A girl is playing with a teddy bear.",
        "Ein Mädchen spielt mit einem Teddybären.",
    ),
    # Owners.
    (
        clause("a man", "hug", "his brother"),
        "A man is hugging his brother.",
        "Ein Mann umarmt seinen Bruder.",
    ),
    (
        clause("a woman", "help", "her mother"),
        "A woman is helping her mother.",
        "Eine Frau hilft ihrer Mutter.",
    ),
    (
        clause("the girl", "call", "her grandfather"),
        "The girl is calling her grandfather.",
        "Das Mädchen ruft ihren Großvater an.",
    ),
    (
        clause("two boys", "wait for", "their neighbour"),
        "Two boys are waiting for their neighbour.",
        "Zwei Jungen warten auf ihren Nachbarn.",
    ),
    (
        clause("a schoolboy", "play with", "his red ball"),
        "A schoolboy is playing with his red ball.",
        "Ein Schüler spielt mit seinem roten Ball.",
    ),
    (
        clause("the nurse", "talk to", "her friends"),
        "The nurse is talking to her friends.",
        "Die Krankenschwester spricht mit ihren Freunden.",
    ),
    (
        clause("a girl", "look for", "her yellow umbrella"),
        "A girl is looking for her yellow umbrella.",
        "Ein Mädchen sucht ihren gelben Regenschirm.",
    ),
    # Strong verbs.
    (
        clause("the puppy", "run", where="around the tree"),
        "The puppy is running around the tree.",
        "Der Welpe läuft um den Baum herum.",
    ),
    (
        clause("a woman", "give", "a apple", to="the child"),
        "A woman is giving the child an apple.",
        "Eine Frau gibt dem Kind einen Apfel.",
    ),
    (
        clause("a lady", "eat", "a sweet pear"),
        "A lady is eating a sweet pear.",
        "Eine Dame isst eine süße Birne.",
    ),
    (
        clause("the black horse", "eat", "a carrot"),
        "The black horse is eating a carrot.",
        "Das schwarze Pferd frisst eine Karotte.",
    ),
    (
        clause("a boy", "throw", "a stone", "into the lake"),
        "A boy is throwing a stone into the lake.",
        "Ein Junge wirft einen Stein in den See.",
    ),
    # Prepositions, with their contractions; accusative for motion, dative for rest.
    (
        clause("a duck", "swim", where="in the river"),
        "A duck is swimming in the river.",
        "Eine Ente schwimmt im Fluss.",
    ),
    (
        clause("a boy", "jump", where="into the water"),
        "A boy is jumping into the water.",
        "Ein Junge springt ins Wasser.",
    ),
    (
        clause("a cat", "lie", where="on the carpet"),
        "A cat is lying on the carpet.",
        "Eine Katze liegt auf dem Teppich.",
    ),
    (
        clause("a goat", "jump", where="onto the table"),
        "A goat is jumping onto the table.",
        "Eine Ziege springt auf den Tisch.",
    ),
    (
        clause("a man", "walk", where="to the station"),
        "A man is walking to the station.",
        "Ein Mann geht zum Bahnhof.",
    ),
    (
        clause("the girls", "walk", where="to the school"),
        "The girls are walking to the school.",
        "Die Mädchen gehen zur Schule.",
    ),
    (
        clause("a tourist", "wait", where="at the bus stop"),
        "A tourist is waiting at the bus stop.",
        "Ein Tourist wartet an der Bushaltestelle.",
    ),
    (
        clause("a tourist", "wait", where="at the station"),
        "A tourist is waiting at the station.",
        "Ein Tourist wartet am Bahnhof.",
    ),
    (
        clause("a worker", "knock on", "the window"),
        "A worker is knocking on the window.",
        "Ein Arbeiter klopft ans Fenster.",
    ),
    (
        clause("a worker", "lean against", "the wall"),
        "A worker is leaning against the wall.",
        "Ein Arbeiter lehnt an der Wand.",
    ),
    (
        clause("a worker", "lean", "a ladder", "against the wall"),
        "A worker is leaning a ladder against the wall.",
        "Ein Arbeiter lehnt eine Leiter an die Wand.",
    ),
    (
        clause("a man", "get up", where="from the chair"),
        "A man is getting up from the chair.",
        "Ein Mann steht vom Stuhl auf.",
    ),
    (
        clause("a bird", "fly", where="over the roof"),
        "A bird is flying over the roof.",
        "Ein Vogel fliegt über das Dach.",
    ),
    (
        clause("a woman", "stroll", where="along the river"),
        "A woman is strolling along the river.",
        "Eine Frau spaziert den Fluss entlang.",
    ),
    (
        clause("two soldiers", "hike", where="past the castle"),
        "Two soldiers are hiking past the castle.",
        "Zwei Soldaten wandern am Schloss vorbei.",
    ),
    (
        clause("a man", "put", "the newspaper", "on the table"),
        "A man is putting the newspaper on the table.",
        "Ein Mann legt die Zeitung auf den Tisch.",
    ),
    (
        clause("a lady", "place", "a vase", "on the wooden table"),
        "A lady is placing a vase on the wooden table.",
        "Eine Dame stellt eine Vase auf den Holztisch.",
    ),
    (
        clause("a farmer", "ride", "a white horse", "across the field"),
        "A farmer is riding a white horse across the field.",
        "Ein Bauer reitet auf einem weißen Pferd über das Feld.",
    ),
    (
        clause("the soldier", "ride", "a new motorcycle"),
        "The soldier is riding a new motorcycle.",
        "Der Soldat fährt mit einem neuen Motorrad.",
    ),
    (
        clause("the taxi driver", "drive", "a taxi"),
        "The taxi driver is driving a taxi.",
        "Der Taxifahrer fährt mit dem Taxi.",
    ),
    (
        clause("the street musician", "play", "the guitar"),
        "The street musician is playing the guitar.",
        "Der Straßenmusiker spielt Gitarre.",
    ),
]


@pytest.mark.parametrize(("tree", "source", "target"), TABLE, ids=[row[1] for row in TABLE])
def test_words_agree(tree: Clause, source: str, target: str) -> None:
    assert (english(tree), german(tree)) == (source, target)
