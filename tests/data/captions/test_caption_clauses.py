"""Tests of word order: parted verbs, subordinate clauses, infinitives, what there is."""

import pytest
from caption_notation import clause, feeling, fronted, relating, there, with_manner

from nmt.data.captions.author import AND, BECAUSE, BUT, INTENTS, REPORTS, WHILE
from nmt.data.captions.english import english
from nmt.data.captions.german import german
from nmt.data.captions.trees import Chain, Intent, Joined, Report, Sentence

WANTS, HAS, TRIES, BEGINS = INTENTS
SEE_THAT, PHOTO_HOW, SEE_HOW = REPORTS

TABLE: list[tuple[Sentence, str, str]] = [
    # Separable and reflexive verbs: parted in main clauses.
    (
        clause("a boy", "pick up", "the ball"),
        "A boy is picking up the ball.",
        "Ein Junge hebt den Ball auf.",
    ),
    (
        clause("two women", "tidy up", "the kitchen"),
        "Two women are tidying up the kitchen.",
        "Zwei Frauen räumen die Küche auf.",
    ),
    (
        clause("a actress", "try on", "a white dress"),
        "An actress is trying on a white dress.",
        "Eine Schauspielerin probiert ein weißes Kleid an.",
    ),
    (
        clause("the worker", "rest", where="under the apple tree"),
        "The worker is resting under the apple tree.",
        "Der Arbeiter ruht sich unter dem Apfelbaum aus.",
    ),
    (
        clause("a man", "sit down", where="on the bench"),
        "A man is sitting down on the bench.",
        "Ein Mann setzt sich auf die Bank.",
    ),
    (
        clause("the farmer", "take care of", "the cows"),
        "The farmer is taking care of the cows.",
        "Der Bauer kümmert sich um die Kühe.",
    ),
    (
        clause("a lady", "get", where="into the taxi"),
        "A lady is getting into the taxi.",
        "Eine Dame steigt ins Taxi ein.",
    ),
    (
        clause("the tourists", "get", where="out of the bus"),
        "The tourists are getting out of the bus.",
        "Die Touristen steigen aus dem Bus aus.",
    ),
    (
        clause("a man", "offer", "a biscuit", to="the lady"),
        "A man is offering the lady a biscuit.",
        "Ein Mann bietet der Dame einen Keks an.",
    ),
    # Time before manner before place; the object after the place where it happens, before the goal.
    (
        clause("a man", "wait", where="at the station", when="in the evening"),
        "A man is waiting at the station in the evening.",
        "Ein Mann wartet am Abend am Bahnhof.",
    ),
    (
        with_manner(
            clause("a man", "wait", where="at the station", when="in the evening"), "patiently"
        ),
        "A man is patiently waiting at the station in the evening.",
        "Ein Mann wartet am Abend geduldig am Bahnhof.",
    ),
    (
        with_manner(clause("a girl", "run", where="across the meadow"), "happily"),
        "A girl is happily running across the meadow.",
        "Ein Mädchen läuft fröhlich über die Wiese.",
    ),
    (
        with_manner(clause("a cook", "pour", "hot soup", "into the bowl"), "carefully"),
        "A cook is carefully pouring hot soup into the bowl.",
        "Ein Koch gießt vorsichtig heiße Suppe in die Schüssel.",
    ),
    (
        clause("a woman", "read", "a book", "in the garden"),
        "A woman is reading a book in the garden.",
        "Eine Frau liest im Garten ein Buch.",
    ),
    (
        clause("a man", "wait for", "the bus", "at the bus stop"),
        "A man is waiting for the bus at the bus stop.",
        "Ein Mann wartet an der Bushaltestelle auf den Bus.",
    ),
    # The verb stays second whatever opens the sentence.
    (
        fronted(clause("a man", "read", "a letter", when="in the morning"), "time"),
        "In the morning, a man is reading a letter.",
        "Am Morgen liest ein Mann einen Brief.",
    ),
    (
        fronted(clause("a woman", "read", "a book", "in the garden"), "place"),
        "In the garden, a woman is reading a book.",
        "Im Garten liest eine Frau ein Buch.",
    ),
    (
        fronted(clause("two girls", "rest", where="by the sea", when="on a sunny day"), "time"),
        "On a sunny day, two girls are resting by the sea.",
        "An einem sonnigen Tag ruhen sich zwei Mädchen am Meer aus.",
    ),
    (
        fronted(clause("a boy", "walk", where="up the hill", when="at noon"), "time"),
        "At noon, a boy is walking up the hill.",
        "Am Mittag geht ein Junge den Hügel hinauf.",
    ),
    # Subordinate clauses: the verb last, joined to its prefix.
    (
        Joined(
            clause("a man", "sing", where="in the park"),
            WHILE,
            clause("a woman", "pick up", "the key"),
        ),
        "A man is singing in the park while a woman is picking up the key.",
        "Ein Mann singt im Park, während eine Frau den Schlüssel aufhebt.",
    ),
    (
        Joined(
            clause("a man", "eat", "soup"),
            WHILE,
            clause("a child", "cry", where="at the window"),
            link_first=True,
        ),
        "While a child is crying at the window, a man is eating soup.",
        "Während ein Kind am Fenster weint, isst ein Mann Suppe.",
    ),
    (
        Joined(
            clause("a boy", "rest", where="by the river"),
            WHILE,
            clause("a dog", "eat", "a sausage"),
            link_first=True,
        ),
        "While a dog is eating a sausage, a boy is resting by the river.",
        "Während ein Hund eine Wurst frisst, ruht sich ein Junge am Fluss aus.",
    ),
    (
        Joined(clause("a man", "eat", "soup"), WHILE, clause("he", "read", "a newspaper")),
        "A man is eating soup while he is reading a newspaper.",
        "Ein Mann isst Suppe, während er eine Zeitung liest.",
    ),
    (
        Joined(
            clause("a lady", "drink", "tea"), WHILE, clause("she", "rest", where="in the garden")
        ),
        "A lady is drinking tea while she is resting in the garden.",
        "Eine Dame trinkt Tee, während sie sich im Garten ausruht.",
    ),
    (
        Joined(clause("the men", "drink", "tea"), WHILE, clause("they", "wait for", "the train")),
        "The men are drinking tea while they are waiting for the train.",
        "Die Männer trinken Tee, während sie auf den Zug warten.",
    ),
    (
        Joined(
            feeling("the girl", "happy"), BECAUSE, clause("a puppy", "sleep", where="on the bed")
        ),
        "The girl is happy because a puppy is sleeping on the bed.",
        "Das Mädchen ist glücklich, weil ein Welpe auf dem Bett schläft.",
    ),
    (
        Joined(
            feeling("two waiters", "tired"),
            BECAUSE,
            clause("the farmer", "walk", where="past the school"),
        ),
        "Two waiters are tired because the farmer is walking past the school.",
        "Zwei Kellner sind müde, weil der Bauer an der Schule vorbeigeht.",
    ),
    (
        Report(*SEE_THAT, clause("a boy", "hide", where="behind the door")),
        "You can see that a boy is hiding behind the door.",
        "Man sieht, dass sich ein Junge hinter der Tür versteckt.",
    ),
    (
        Report(*PHOTO_HOW, clause("a lady", "take off", "her coat")),
        "The photo shows how a lady is taking off her coat.",
        "Das Foto zeigt, wie eine Dame ihren Mantel auszieht.",
    ),
    (
        Report(*SEE_HOW, clause("a man and a woman", "get", where="into the car")),
        "You can see how a man and a woman are getting into the car.",
        "Man sieht, wie ein Mann und eine Frau ins Auto einsteigen.",
    ),
    # Relative clauses: gender from the head, case from the gap.
    (
        relating(
            clause("a man", "wait", where="at the station"),
            clause("a man", "hold", "a umbrella"),
            "subject",
        ),
        "A man who is holding an umbrella is waiting at the station.",
        "Ein Mann, der einen Regenschirm hält, wartet am Bahnhof.",
    ),
    (
        relating(
            clause("the women", "sing", where="in the park"),
            clause("the women", "rest", where="in the grass"),
            "subject",
        ),
        "The women who are resting in the grass are singing in the park.",
        "Die Frauen, die sich im Gras ausruhen, singen im Park.",
    ),
    (
        relating(
            clause("a boy", "watch", "the teacher"),
            clause("the teacher", "pick up", "a key"),
            "subject",
        ),
        "A boy is watching the teacher who is picking up a key.",
        "Ein Junge beobachtet den Lehrer, der einen Schlüssel aufhebt.",
    ),
    (
        relating(
            clause("the dog", "lie", where="on the lawn"),
            clause("a girl", "stroke", "the dog"),
            "object",
        ),
        "The dog that a girl is stroking is lying on the lawn.",
        "Der Hund, den ein Mädchen streichelt, liegt auf dem Rasen.",
    ),
    (
        relating(clause("the lady", "drink", "tea"), clause("a boy", "help", "the lady"), "object"),
        "The lady whom a boy is helping is drinking tea.",
        "Die Dame, der ein Junge hilft, trinkt Tee.",
    ),
    (
        relating(
            clause("the children", "drink", "milk"),
            clause("a man", "thank", "the children"),
            "object",
        ),
        "The children whom a man is thanking are drinking milk.",
        "Die Kinder, denen ein Mann dankt, trinken Milch.",
    ),
    (
        relating(
            clause("the child", "drink", "milk"), clause("a man", "wait for", "the child"), "object"
        ),
        "The child whom a man is waiting for is drinking milk.",
        "Das Kind, auf das ein Mann wartet, trinkt Milch.",
    ),
    (
        relating(
            clause("a artist", "draw", "the tree"),
            clause("a horse", "stand", where="under the tree"),
            "place",
        ),
        "An artist is drawing the tree under which a horse is standing.",
        "Ein Künstler zeichnet den Baum, unter dem ein Pferd steht.",
    ),
    (
        relating(
            clause("a artist", "paint", "a bridge"),
            clause("a boy", "kneel", where="on a bridge"),
            "place",
        ),
        "An artist is painting a bridge on which a boy is kneeling.",
        "Ein Künstler malt eine Brücke, auf der ein Junge kniet.",
    ),
    # Two main clauses, and one subject that does two things.
    (
        Joined(
            clause("a boy", "sing", where="in the village"),
            AND,
            clause("a girl", "read", "a letter"),
        ),
        "A boy is singing in the village, and a girl is reading a letter.",
        "Ein Junge singt im Dorf und ein Mädchen liest einen Brief.",
    ),
    (
        Joined(
            clause("a boy", "sing", where="in the village"),
            BUT,
            clause("a lady", "turn off", "the radio"),
        ),
        "A boy is singing in the village, but a lady is turning off the radio.",
        "Ein Junge singt im Dorf, aber eine Dame schaltet das Radio aus.",
    ),
    (
        Chain(clause("a man", "sit", where="on a bench"), clause("a man", "read", "a newspaper")),
        "A man is sitting on a bench and reading a newspaper.",
        "Ein Mann sitzt auf einer Bank und liest eine Zeitung.",
    ),
    (
        Chain(
            clause("two boys", "stand", where="in the snow"),
            clause("two boys", "call", "their father"),
        ),
        "Two boys are standing in the snow and calling their father.",
        "Zwei Jungen stehen im Schnee und rufen ihren Vater an.",
    ),
    # Infinitives, bare and with "zu", which goes between the prefix and the stem.
    (
        Intent(clause("a boy", "eat", "a apple"), *WANTS),
        "A boy wants to eat an apple.",
        "Ein Junge will einen Apfel essen.",
    ),
    (
        Intent(clause("two soldiers", "get", where="out of the train"), *HAS),
        "Two soldiers have to get out of the train.",
        "Zwei Soldaten müssen aus dem Zug aussteigen.",
    ),
    (
        Intent(clause("a child", "pick up", "a stone"), *TRIES),
        "A child is trying to pick up a stone.",
        "Ein Kind versucht, einen Stein aufzuheben.",
    ),
    (
        Intent(clause("some girls", "catch", "a balloon"), *TRIES),
        "Some girls are trying to catch a balloon.",
        "Einige Mädchen versuchen, einen Luftballon zu fangen.",
    ),
    (
        Intent(clause("a man", "sit down", where="on the sofa"), *BEGINS),
        "A man is beginning to sit down on the sofa.",
        "Ein Mann beginnt, sich auf das Sofa zu setzen.",
    ),
    (
        Intent(clause("a man", "hike", where="around the lake"), *BEGINS),
        "A man is beginning to hike around the lake.",
        "Ein Mann beginnt, um den See herumzuwandern.",
    ),
    # What there is.
    (
        there("a vase", "on the table"),
        "There is a vase on the table.",
        "Auf dem Tisch steht eine Vase.",
    ),
    (
        there("two knives", "on the table"),
        "There are two knives on the table.",
        "Auf dem Tisch liegen zwei Messer.",
    ),
    (
        there("a round mirror", "on the wall"),
        "There is a round mirror on the wall.",
        "An der Wand hängt ein runder Spiegel.",
    ),
    (
        there("a old tractor", "behind the barn"),
        "There is an old tractor behind the barn.",
        "Hinter der Scheune steht ein alter Traktor.",
    ),
    (
        there("no tree", "in the garden"),
        "There is no tree in the garden.",
        "Es gibt keinen Baum im Garten.",
    ),
    (
        there("no lions", "in the zoo"),
        "There are no lions in the zoo.",
        "Es gibt keine Löwen im Zoo.",
    ),
    (
        there("many old houses", "in the village"),
        "There are many old houses in the village.",
        "Es gibt viele alte Häuser im Dorf.",
    ),
]


@pytest.mark.parametrize(("tree", "source", "target"), TABLE, ids=[row[1] for row in TABLE])
def test_words_stand_in_order(tree: Sentence, source: str, target: str) -> None:
    assert (english(tree), german(tree)) == (source, target)
