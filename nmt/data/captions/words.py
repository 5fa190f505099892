"""The nouns, adjectives and adverbs of the captions, in compact rows."""

# English[/irregular plural] gender German plural; w: a weak masculine; plural -: a mass noun.
NOUNS = """
man: man/men m Mann Männer, student w Student Studenten, tourist w Tourist Touristen,
  police_officer w Polizist Polizisten, farmer w Bauer Bauern, teacher m Lehrer Lehrer,
  cook m Koch Köche, baker m Bäcker Bäcker,
  doctor m Arzt Ärzte, worker m Arbeiter Arbeiter, gardener m Gärtner Gärtner,
  firefighter m Feuerwehrmann Feuerwehrleute, football_player m Fußballspieler Fußballspieler,
  street_musician m Straßenmusiker Straßenmusiker, photographer w Fotograf Fotografen,
  taxi_driver m Taxifahrer Taxifahrer, soldier w Soldat Soldaten, waiter m Kellner Kellner,
  businessman/businessmen m Geschäftsmann Geschäftsmänner, artist m Künstler Künstler,
  postman/postmen m Briefträger Briefträger
woman: woman/women f Frau Frauen, lady f Dame Damen, nurse f Krankenschwester Krankenschwestern,
  actress f Schauspielerin Schauspielerinnen, waitress f Kellnerin Kellnerinnen,
  saleswoman/saleswomen f Verkäuferin Verkäuferinnen
boy: boy w Junge Jungen, schoolboy m Schüler Schüler
girl: girl n Mädchen Mädchen, schoolgirl f Schülerin Schülerinnen
child: child/children n Kind Kinder
infant: baby n Baby Babys, toddler n Kleinkind Kleinkinder
kin: friend m Freund Freunde, brother m Bruder Brüder, sister f Schwester Schwestern,
  neighbour w Nachbar Nachbarn, mother f Mutter Mütter, father m Vater Väter,
  grandmother f Großmutter Großmütter, grandfather m Großvater Großväter
pet: dog m Hund Hunde, cat f Katze Katzen, puppy w Welpe Welpen, rabbit n Kaninchen Kaninchen
livestock: horse n Pferd Pferde, cow f Kuh Kühe, goat f Ziege Ziegen, donkey m Esel Esel,
  pig n Schwein Schweine
bird: bird m Vogel Vögel, duck f Ente Enten, goose/geese f Gans Gänse
wild: monkey w Affe Affen, bear w Bär Bären, lion w Löwe Löwen, elephant w Elefant Elefanten
fruit: apple m Apfel Äpfel, pear f Birne Birnen, banana f Banane Bananen, orange f Orange Orangen
vegetable: carrot f Karotte Karotten, potato/potatoes f Kartoffel Kartoffeln,
  tomato/tomatoes f Tomate Tomaten
snack: sandwich n Sandwich Sandwiches, sausage f Wurst Würste, pretzel f Brezel Brezeln,
  biscuit m Keks Kekse, egg n Ei Eier
baked: cake m Kuchen Kuchen, pizza f Pizza Pizzas
dish: bread n Brot -, cheese m Käse -, soup f Suppe -, rice m Reis -, ice_cream n Eis -
drink: coffee m Kaffee -, tea m Tee -, water n Wasser -, milk f Milch -, juice m Saft -,
  lemonade f Limonade -
text: book n Buch Bücher, newspaper f Zeitung Zeitungen, letter m Brief Briefe,
  magazine f Zeitschrift Zeitschriften, postcard f Postkarte Postkarten
toy: ball m Ball Bälle, balloon m Luftballon Luftballons, doll f Puppe Puppen,
  kite m Drachen Drachen, teddy_bear w Teddybär Teddybären
vessel: cup f Tasse Tassen, glass n Glas Gläser, bottle f Flasche Flaschen,
  bowl f Schüssel Schüsseln, pot m Topf Töpfe, vase f Vase Vasen
cutlery: knife/knives n Messer Messer, fork f Gabel Gabeln, spoon m Löffel Löffel,
  plate m Teller Teller
luggage: bag f Tasche Taschen, suitcase m Koffer Koffer, backpack m Rucksack Rucksäcke,
  basket m Korb Körbe, box f Kiste Kisten, bucket m Eimer Eimer
present: parcel n Paket Pakete, gift n Geschenk Geschenke
stuff: umbrella m Regenschirm Regenschirme, key m Schlüssel Schlüssel,
  towel n Handtuch Handtücher, blanket f Decke Decken, camera f Kamera Kameras
found: stick m Stock Stöcke, stone m Stein Steine
decor: picture n Bild Bilder, mirror m Spiegel Spiegel, clock f Uhr Uhren
device: lamp f Lampe Lampen, radio n Radio Radios, television m Fernseher Fernseher,
  computer m Computer Computer
tool: hammer m Hammer Hämmer, shovel f Schaufel Schaufeln, ladder f Leiter Leitern
instrument: guitar f Gitarre Gitarren, violin f Geige Geigen, piano n Klavier Klaviere,
  flute f Flöte Flöten, trumpet f Trompete Trompeten
cycle: bicycle n Fahrrad Fahrräder, motorcycle n Motorrad Motorräder, scooter m Roller Roller
vehicle: car n Auto Autos, bus m Bus Busse, truck m Lastwagen Lastwagen,
  tractor m Traktor Traktoren, taxi n Taxi Taxis, train m Zug Züge
cart: pram m Kinderwagen Kinderwagen, wheelbarrow f Schubkarre Schubkarren,
  sledge m Schlitten Schlitten
garment: jacket f Jacke Jacken, coat m Mantel Mäntel, shirt n Hemd Hemden,
  suit m Anzug Anzüge, jumper m Pullover Pullover, uniform f Uniform Uniformen,
  costume n Kostüm Kostüme
gown: dress n Kleid Kleider, skirt m Rock Röcke
headwear: hat m Hut Hüte, cap f Mütze Mützen, scarf/scarves m Schal Schals
plant: tree m Baum Bäume, apple_tree m Apfelbaum Apfelbäume, bush m Busch Büsche,
  flower f Blume Blumen, sunflower f Sonnenblume Sonnenblumen
furniture: table m Tisch Tische, wooden_table m Holztisch Holztische, chair m Stuhl Stühle,
  sofa n Sofa Sofas, bed n Bett Betten, bench f Bank Bänke, shelf/shelves n Regal Regale,
  cupboard m Schrank Schränke, armchair m Sessel Sessel, carpet m Teppich Teppiche,
  swing f Schaukel Schaukeln
part: window n Fenster Fenster, door f Tür Türen, gate n Tor Tore, fence m Zaun Zäune,
  roof n Dach Dächer, wall f Wand Wände, staircase f Treppe Treppen
building: house n Haus Häuser, church f Kirche Kirchen, castle n Schloss Schlösser,
  museum n Museum Museen, school f Schule Schulen, shop n Geschäft Geschäfte,
  hotel n Hotel Hotels, station m Bahnhof Bahnhöfe, restaurant n Restaurant Restaurants,
  barn f Scheune Scheunen, tent n Zelt Zelte
sight: fountain m Brunnen Brunnen, statue f Statue Statuen, bridge f Brücke Brücken,
  wooden_bridge f Holzbrücke Holzbrücken
nature: park m Park Parks, garden m Garten Gärten, forest m Wald Wälder, field n Feld Felder,
  meadow f Wiese Wiesen, river m Fluss Flüsse, lake m See Seen, sea n Meer -,
  beach m Strand Strände, hill m Hügel Hügel, mountain m Berg Berge, lawn m Rasen -,
  grass n Gras -, snow m Schnee -, rock m Felsen Felsen
town: city f Stadt Städte, village n Dorf Dörfer, street f Straße Straßen, path m Weg Wege,
  market_square m Marktplatz Marktplätze, market m Markt Märkte,
  playground m Spielplatz Spielplätze, bus_stop f Bushaltestelle Bushaltestellen,
  courtyard m Hof Höfe, farm m Bauernhof Bauernhöfe, zoo m Zoo Zoos,
  terrace f Terrasse Terrassen, harbour m Hafen Häfen
room: kitchen f Küche Küchen, living_room n Wohnzimmer Wohnzimmer,
  bathroom n Badezimmer Badezimmer, bedroom n Schlafzimmer Schlafzimmer,
  office n Büro Büros, workshop f Werkstatt Werkstätten, garage f Garage Garagen,
  classroom n Klassenzimmer Klassenzimmer, library f Bibliothek Bibliotheken
"""

GROUPS = {
    "adult": "man woman",
    "youth": "boy girl child",
    "human": "man woman boy girl child",
    "animal": "pet livestock bird wild",
    "food": "fruit snack baked dish",
    "clothes": "garment gown headwear",
    "belongings": "stuff headwear tool pram flute",
    "seats": "chair sofa bed bench armchair",
    "goods": "food text plant clothes toy pram vase instrument device",
    "loads": "luggage present tool furniture instrument infant",
}

# English German[/stem before an ending]: the kinds and nouns that it describes.
QUALITIES = """
young jung: man woman animal
old alt: man woman pet livestock vehicle cycle luggage furniture building sight instrument tree door
tall groß: adult boy girl
big groß: pet livestock luggage present toy vessel furniture building sight plant park balloon
small klein: youth baby pet bird luggage toy furniture decor building village garden shop plant
friendly freundlich: adult youth pet
tired müde: human infant pet livestock
hungry hungrig: human infant animal
curious neugierig: youth animal
happy glücklich: human infant
elegant elegant: woman businessman garment gown restaurant hotel
strong stark: man livestock bear lion
famous berühmt: artist actress photographer cook doctor football_player museum castle
brave mutig: soldier firefighter police_officer youth
new neu: vehicle cycle device camera clothes furniture luggage instrument tool house
heavy schwer: luggage parcel stone hammer wheelbarrow
expensive teuer/teur: gown suit jacket camera device clock instrument hotel
broken kaputt: cycle vehicle device umbrella toy chair clock roof
empty leer: vessel luggage plate street playground classroom
beautiful schön: plant gown garden castle vase beach lake picture horse
dirty schmutzig: cutlery vessel window vehicle towel puppy pig
clean sauber: cutlery vessel towel window shirt
dark dunkel/dunkl: forest room courtyard street barn
long lang: stick gown scarf ladder letter coat
high hoch/hoh: mountain fence tree rock castle bridge
round rund: table mirror clock carpet window fountain
fresh frisch: fruit vegetable bread cheese milk egg
hot heiß: coffee tea soup sausage
cold kalt: water milk juice lemonade
sweet süß: fruit baked lemonade
ripe reif: fruit tomato
delicious lecker: baked snack soup ice_cream
quiet ruhig: village street lake park library
"""
COLOURS = """
red rot: clothes vehicle cycle luggage toy umbrella apple flower chair sofa house blanket door
blue blau: clothes vehicle cycle luggage toy umbrella vessel chair sofa blanket door towel
green grün: clothes vehicle cycle luggage umbrella apple vessel sofa blanket bench
yellow gelb: clothes vehicle cycle toy umbrella bird flower vessel blanket house
black schwarz: clothes vehicle cycle luggage pet livestock umbrella
white weiß: clothes vehicle pet livestock goose vessel towel house fence door
brown braun: clothes pet livestock bear luggage furniture
grey grau: clothes pet donkey elephant vehicle carpet
pink rosa: gown headwear jumper balloon flower towel umbrella
dark_blue dunkelblau: clothes vehicle sofa carpet
colourful bunt: balloon kite headwear gown carpet blanket bird towel
"""
MOODS = (
    "happy glücklich, sad traurig, tired müde, surprised überrascht, proud stolz, angry wütend, "
    "nervous nervös, excited aufgeregt, disappointed enttäuscht, satisfied zufrieden"
)

# English German: the styles of the verbs that it fits.
MANNERS = """
slowly langsam: motion care
quickly schnell: motion task
carefully vorsichtig: care climb craft
happily fröhlich: motion loud play
calmly ruhig: calm wait
patiently geduldig: wait warm
loudly laut: loud
kindly freundlich: warm
attentively aufmerksam: watch
thoughtfully nachdenklich: watch
skilfully geschickt: task climb craft
proudly stolz: show play
"""
# English | German
TIMES = """
in the morning | am Morgen
at noon | am Mittag
in the afternoon | am Nachmittag
in the evening | am Abend
at night | in der Nacht
today | heute
on Sunday | am Sonntag
at the weekend | am Wochenende
on a sunny day | an einem sonnigen Tag
on a cold morning | an einem kalten Morgen
in the rain | im Regen
"""
