"""What may happen in a caption, and where: places and verbs with their company, one row each."""

# A row: the set it belongs to | English | German | case [particle] | nouns
PLACES = """
seat | on | auf | dat | bench chair sofa blanket rock swing staircase
seat | in | in | dat | armchair grass
bed | on | auf | dat | sofa bed carpet blanket bench lawn
bed | in | in | dat | grass
outdoor | in | in | dat | park garden forest village zoo courtyard snow
outdoor | in | auf | dat | field meadow
outdoor | on | auf | dat | street market_square playground bridge terrace farm wooden_bridge
outdoor | at | an | dat | beach lake station bus_stop harbour
outdoor | on | auf | dat | path hill mountain
outdoor | at | auf | dat | market
outdoor | by | an | dat | river sea
outdoor | in front of | vor | dat | house church museum school shop castle tent hotel
outdoor | behind | hinter | dat | house barn fence church
outdoor | next to | neben | dat | fountain statue tree car tent
outdoor | under | unter | dat | tree apple_tree bridge
outdoor | between | zwischen | dat | tree house bush tent car
indoor | in | in | dat | room restaurant museum
indoor | at | an | dat | window table
room | in | in | dat | room
selling | at | auf | dat | market
selling | on | auf | dat | street market_square bridge
selling | in front of | vor | dat | church station castle
perch | on | auf | dat | roof fence gate
working | in | in | dat | office workshop garage kitchen restaurant hotel museum library
working | in | auf | dat | field
working | on | auf | dat | farm
kitchen | in | in | dat | kitchen restaurant hotel
region | in | in | dat | park garden forest village zoo city
region | at | an | dat | beach lake station harbour
region | on | auf | dat | mountain hill
region | by | an | dat | river sea
water | in | in | dat | lake sea river
pasture | in | auf | dat | meadow field
pasture | on | auf | dat | farm
pasture | behind | hinter | dat | barn fence
pasture | next to | neben | dat | barn river
stage | in | in | dat | park village restaurant garden
stage | on | auf | dat | street market_square terrace bridge
stage | in front of | vor | dat | church castle fountain
trail | through | durch | acc | park forest city village garden snow gate
trail | across | über | acc | street bridge wooden_bridge meadow field market_square
route | along | | acc entlang | river street beach path
route | past | an | dat vorbei | house church school statue fountain castle museum
route | around | um | acc herum | fountain statue lake tree
walk | into | in | acc | house forest church shop museum station
walk | out of | aus | dat | house forest shop tent hotel
walk | to | zu | dat | school station beach lake bus_stop market harbour
walk | up | | acc hinauf | hill mountain staircase street
walk | down | | acc hinunter | hill mountain staircase street
leap | over | über | acc | fence stone rock bench bucket
leap | into | in | acc | water lake river snow
leap | onto | auf | acc | table bench sofa bed
climb | onto | auf | acc | roof rock tractor table
climb | over | über | acc | fence gate rock
climb | up | | acc hinauf | ladder tree hill apple_tree
crawl | across | über | acc | carpet lawn meadow
crawl | under | unter | acc | table bed bench
crawl | through | durch | acc | grass living_room
sky | over | über | acc | house lake forest village sea field roof
hiding | behind | hinter | dat | tree bush door sofa fence
hiding | under | unter | dat | table bed blanket
sitting | on | auf | acc | bench chair sofa blanket swing carpet
rising | from | von | dat | chair bench sofa armchair
boarding | into | in | acc | car bus taxi train
leaving | out of | aus | dat | car bus taxi train
shopping | at | auf | dat | market
shopping | in | in | dat | shop city village
shop | in | in | dat | shop
surface | on | auf | dat | table wooden_table chair bed shelf carpet
surface | in | in | dat | cupboard box basket
onto | on | auf | acc | table wooden_table chair bed shelf carpet
onto | into | in | acc | cupboard box basket
wall | on | an | dat | wall
onto_wall | on | an | acc | wall
lean | against | an | acc | wall tree fence house
pouring | into | in | acc | cup glass bottle bowl pot
tossing | into | in | acc | water lake river
tossing | over | über | acc | fence gate roof
"""

# base/-ing [rest] | [sich] er-form infinitive | subjects | [preposition.case:] objects | places |
# style of manner. The infinitive is prefix·stem where the prefix parts.
VERBS = """
sit/sitting | sitzt sitzen | human | | seat outdoor | calm
sit/sitting | sitzt sitzen | pet | | bed | calm
sit/sitting | sitzt sitzen | bird cat monkey | | perch | calm
stand/standing | steht stehen | human animal | | outdoor | calm
lie/lying | liegt liegen | human pet | | bed | calm
lie/lying | liegt liegen | livestock wild | | pasture | calm
sleep/sleeping | schläft schlafen | human pet infant | | bed |
kneel/kneeling | kniet knien | human | | outdoor |
wait/waiting | wartet warten | human | | outdoor | wait
play/playing | spielt spielen | youth pet infant | | outdoor indoor | play
dance/dancing | tanzt tanzen | human | | stage | play
sing/singing | singt singen | human | | stage indoor | loud
laugh/laughing | lacht lachen | human infant | | outdoor indoor | loud
cry/crying | weint weinen | youth infant | | indoor outdoor | loud
work/working | arbeitet arbeiten | adult | | working | wait
swim/swimming | schwimmt schwimmen | human dog duck goose | | water | motion
graze/grazing | grast grasen | horse cow goat donkey goose | | pasture | calm
shop/shopping | kauft ein·kaufen | human | | shopping |
rest/resting | sich ruht aus·ruhen | human | | bed outdoor |
hide/hiding | sich versteckt verstecken | youth pet monkey | | hiding |
walk/walking | geht gehen | human | | trail route walk | motion
run/running | läuft laufen | human pet livestock | | trail route walk | motion
stroll/strolling | spaziert spazieren | human | | trail route | motion
hike/hiking | wandert wandern | human | | trail route | motion
jump/jumping | springt springen | youth pet goat monkey lion | | leap | motion
climb/climbing | klettert klettern | youth man cat monkey bear | | climb | climb
crawl/crawling | kriecht kriechen | infant puppy cat | | crawl | motion
fly/flying | fliegt fliegen | bird | | sky | motion
sit/sitting down | sich setzt setzen | human | | sitting | motion
get/getting up | steht auf·stehen | human | | rising | motion
get/getting | steigt ein·steigen | human | | boarding | motion
get/getting | steigt aus·steigen | human | | leaving | motion
ride/riding | fährt fahren | human | mit.dat: cycle | trail route | motion
drive/driving | fährt fahren | adult | mit.dat: car truck tractor taxi | trail route | motion
ride/riding | reitet reiten | human | auf.dat: horse donkey elephant | trail route | motion
read/reading | liest lesen | human | text | outdoor indoor seat | watch
write/writing | schreibt schreiben | human | letter postcard book | indoor | watch
draw/drawing | zeichnet zeichnen | human | plant animal building hill mountain | indoor seat | craft
paint/painting | malt malen | human | picture plant sight castle vase mountain | outdoor | craft
eat/eating | isst essen | human | food tomato carrot | outdoor indoor seat |
eat/eating | frisst fressen | animal | carrot apple bread banana sausage | outdoor seat |
drink/drinking | trinkt trinken | human | drink | outdoor indoor seat |
drink/drinking | trinkt trinken | animal | water milk | outdoor seat |
cook/cooking | kocht kochen | human | soup rice egg vegetable | kitchen |
bake/baking | backt backen | human | baked bread biscuit | kitchen |
cut/cutting | schneidet schneiden | human | bread cheese cake vegetable fruit | kitchen | craft
peel/peeling | schält schälen | human | potato carrot apple orange banana | indoor seat | craft
buy/buying | kauft kaufen | human | goods | shopping |
sell/selling | verkauft verkaufen | adult | food vegetable flower clothes | selling |
wash/washing | wäscht waschen | human | vehicle cart vegetable clothes cutlery | outdoor | care
clean/cleaning | putzt putzen | human | window staircase mirror bathroom kitchen cycle pram | | care
repair/repairing | repariert reparieren | human | vehicle cycle cart roof device | outdoor | task
build/building | baut bauen | human | house fence barn tent bridge | outdoor | craft
photograph/photographing | fotografiert fotografieren | human | building sight animal | outdoor |
hold/holding | hält halten | human | toy stuff tool found infant | outdoor seat | show
carry/carrying | trägt tragen | human | loads | trail walk | care
push/pushing | schiebt schieben | human | cart bicycle car | trail | motion
pull/pulling | zieht ziehen | human horse donkey | sledge wheelbarrow suitcase | trail | motion
throw/throwing | wirft werfen | youth adult | ball found | tossing |
catch/catching | fängt fangen | youth dog | ball balloon | outdoor | task
chase/chasing | jagt jagen | pet lion youth | cat ball bird rabbit | trail |
stroke/stroking | streichelt streicheln | human | pet horse donkey goat | outdoor seat | care
feed/feeding | füttert füttern | human | pet livestock bird infant | outdoor | wait
hug/hugging | umarmt umarmen | human | human kin pet | outdoor | play
kiss/kissing | küsst küssen | adult | kin infant child | outdoor |
greet/greeting | begrüßt begrüßen | human | human kin | outdoor | warm
watch/watching | beobachtet beobachten | human pet | human animal train | outdoor seat | watch
look/looking at | betrachtet betrachten | human | picture mirror text sight castle | seat | watch
look/looking for | sucht suchen | human | ball pet belongings | outdoor indoor | wait
water/watering | gießt gießen | human | plant | | care
plant/planting | pflanzt pflanzen | human | plant | outdoor | task
pick/picking | pflückt pflücken | human | flower sunflower fruit tomato | pasture | care
open/opening | öffnet öffnen | human | window door gate bottle umbrella luggage | | care
close/closing | schließt schließen | human | window door gate umbrella luggage | | care
tidy/tidying up | räumt auf·räumen | human | room cupboard | | wait
pick/picking up | hebt auf·heben | human | ball found key cutlery text | outdoor indoor | care
put/putting on | zieht an·ziehen | human | garment gown | room | care
take/taking off | zieht aus·ziehen | human | garment | room | care
try/trying on | probiert an·probieren | human | clothes | shop room |
turn/turning on | schaltet ein·schalten | human | device | indoor |
turn/turning off | schaltet aus·schalten | human | device | indoor |
hang/hanging up | hängt auf·hängen | human | decor towel shirt coat lamp | room | care
unpack/unpacking | packt aus·packen | human | suitcase backpack box present | room seat | care
dry/drying | trocknet ab·trocknen | human | cutlery cup glass bowl pot vase | kitchen | care
call/calling | ruft an·rufen | human | kin doctor waiter | outdoor seat |
wake/waking up | weckt auf·wecken | human | kin youth infant dog | room | care
lift/lifting | hebt hoch·heben | human | infant luggage stone television puppy | outdoor | care
play/playing | spielt spielen | human | instrument | stage seat | craft
help/helping | hilft helfen | human | dat: human kin | outdoor indoor | warm
thank/thanking | dankt danken | human | dat: human kin | outdoor | warm
follow/following | folgt folgen | human pet livestock | dat: human animal car bus | trail | motion
listen/listening to | hört zu·hören | human | dat: human kin | indoor seat | watch
wave/waving to | winkt winken | human | dat: human kin | outdoor | warm
wait/waiting for | wartet warten | human | auf.acc: bus train taxi human kin | outdoor | wait
talk/talking to | spricht sprechen | human | mit.dat: human kin | outdoor indoor seat | warm
play/playing with | spielt spielen | youth pet | mit.dat: toy pet stick | outdoor indoor | play
dance/dancing with | tanzt tanzen | adult | mit.dat: adult kin | stage | play
point/pointing at | zeigt zeigen | human | auf.acc: building animal vehicle sight clock | outdoor |
laugh/laughing at | lacht lachen | human | über.acc: human monkey puppy | outdoor | loud
take/taking care of | sich kümmert kümmern | human | um.acc: infant pet livestock | outdoor | wait
knock/knocking on | klopft klopfen | human | an.acc: door window gate | | loud
lean/leaning against | lehnt lehnen | human | an.dat: wall tree door fence car | | calm
"""

# The same, with a place that must stand there.
PLACING = """
put/putting | legt legen | human | text cutlery key towel blanket fruit present | onto | care
place/placing | stellt stellen | human | vessel lamp luggage radio computer | onto | care
hang/hanging | hängt hängen | human | decor | onto_wall | care
lean/leaning | lehnt lehnen | human | ladder cycle shovel | lean | care
pour/pouring | gießt gießen | human | drink soup | pouring | care
"""

# The same, with who receives in place of where.
GIVING = """
give/giving | gibt geben | human | fruit text toy gift flower snack ice_cream | human kin | warm
show/showing | zeigt zeigen | human | text picture toy pet instrument camera | human kin | show
bring/bringing | bringt bringen | human | drink dish text present luggage cutlery | human kin | warm
offer/offering | bietet an·bieten | human | drink snack fruit baked dish | adult kin | warm
hand/handing | reicht reichen | human | vessel cutlery tool stuff bread | human kin | care
"""

# What "there is" becomes, by what is there.
STANDING = """
be/being | steht stehen | vehicle cycle cart statue | | outdoor |
be/being | steht stehen | livestock | | pasture |
be/being | steht stehen | vessel lamp radio luggage | | surface |
be/being | steht stehen | seats table wooden_table shelf device ladder piano | | room |
be/being | liegt liegen | carpet blanket | | room |
be/being | steht stehen | tree bush apple_tree tent church hotel | | region |
be/being | liegt liegen | text cutlery key towel fruit present headwear toy | | surface |
be/being | hängt hängen | decor | | wall |
"""

# What "there is no" and "there are many" speak of.
EXISTING = """
be/being | gibt geben | plant building bench swing bridge | | region |
be/being | gibt geben | furniture window decor device | | room |
be/being | gibt geben | pet livestock bird wild | | region pasture |
"""
