"""Everyday words that say nothing about a value: who does what with which things, where and when.

"Lucy picked 50 apples in the garden" states 50, whoever picks them and wherever. Such words are read in the subject of
a sentence, as its main verb and behind what is counted, but a noun is not read right in front of a number ("page 50").
Words that could say more about a number are in none of these lists: of size and degree ("short", "extra"), of
beginning and end, of change ("doubled", "rises"), of rejection ("discard", "remove", "withdraw"), of doubt and of
wishing ("guess", "hope").
"""

from cooper_verify.rules.counted_nouns import NOUNS, plural
from cooper_verify.rules.word_forms import IRREGULAR

_VERBS = """
accommodate arrange arrive attend bake baby-sit barter bike boil borrow bottle bounce brew brush buy bring build call
camp capture carry carve catch chew chop clean climb coach collect color consume cook crochet cycle dance decorate
deliver deposit dig display donate download draw dress drink drive dry earn eat educate employ engrave enjoy enroll feed
fetch fill fish fly fold fry gain garden gather get give go grade graze greet grill grind hang harvest have hike hire
hold host hug hunt ice invite iron jog jump kick knit label laminate lay learn lease lend lift live load lug mail make
manufacture meet milk mop mow nail obtain occupy offer open order own pack paint park pay perform photograph pick pile
place plant play plow possess pour practice prepare present print produce purchase raise read receive record recycle
rent repair ride roast row run sail save saw score sell send serve sew shelve ship shoot shop sing sit skate sketch ski
sleep slice smoke solve sow spend spray stack stand stay stick store study supply swim tag take teach text trade train
transport travel tutor type unload upload vacuum visit walk wash watch water weave wear weed weigh win wipe work wrap
write yield cost need require sum total form leave contribute share split dole hand allocate assign accumulate gift grow
cover reach charge bill lose finish complete organize join put create design invest pedal peel prune publish pump rake
rescue sharpen shave shovel spread sprinkle stuff translate trim unpack wake warm apply attach award bathe celebrate
drill escape explore film hatch inflate install kayak mix mount mend rebuild refill remodel renovate reserve restock
resell sign sort staple stitch swap tow trace vote
"""
_THINGS = """
afternoon air airport aquarium arcade area art aunt backpack backyard bacon bakery baker band bank bar barbecue bath
bathroom beach beef beer biology birth birthday boss boyfriend bread breakfast broccoli buddy budget business butter
cabbage cabin cafe cafeteria cage campus cardboard cash cashier celery cement cereal champion charity cheese chemistry
chess choir christmas cider circus cinema clay clinic closet clothes clothing coal coach coffee collection college
commission community concert concrete contest cook corn cotton cousin crew crop crowd culture curry dad daily daughter
dentist dessert diet dinner distance dough downtown driveway dust electricity energy equipment essay evening exercise
fabric fair farmer fashion father fee feed fertilizer fishing flour food forest freezer friday fridge fuel fudge fun fur
furniture garage garbage gas gasoline girlfriend glue gold grain grandfather grandma grandmother grandpa grandson grass
gravel grocery groceries ground gym hair hall halloween hay headphone height hobby holiday homework honey household
husband ice income ink insurance interest internet jam january jelly jewelry june july kitchen lab laboratory labor lace
landlord laundry lemonade lettuce life lunch luggage lumber machinery mail maple market material math maths mathematics
meat medicine metal midnight milk mom monday money morning mother mud mum museum music nephew neighborhood niece night
noon november number oak oatmeal ocean october oil online outdoors owner oxygen paint pantry parking party pasta patio
pay paycheck pet piano picnic pine plastic playground plumber plywood poetry popcorn pork porch postage president price
production profit purse rain ranch rent rental repair rice roof rubber sail salary salt sand saturday sauce savings
schedule science sea season seafood semester september service sewing shampoo shed shipment shopping shore shower silk
silver sky snow soap soccer soil son spaghetti sport spring stadium staff stair steel stock storage storm studio stuff
sugar summer sun sunday supermarket swimming syrup tape tax taxi tea teeth tennis tent theater theatre thread thursday
toothpaste traffic trail training transport transportation travel trash treasure trim tuesday tuition turkey tutor uncle
vacation vanilla vinegar wage wallet warehouse washing water weather wedding wednesday weekend weekday wheat wife winter
woods wool worth yarn yesterday yoga yogurt youth zoo circle parallelogram trapezoid rhombus pentagon hexagon octagon
sphere cylinder cone pyramid prism tetrahedron parabola ellipse hyperbola line chord arc segment altitude bisector
tangent polynomial equation inequality function grid board array lattice graph diagram figure shape region surface
midpoint origin axis axes company body cream cup drawer ingredient wrapper overtime delivery journey bin bonus allowance
action app bushel carnival coupon junk wood fund construction shelter revenue drum deck trout basil patient mask
marathon copper hockey donation coaster cart carnation wine stitch shrimp raisin patch oyster vampire character
birdhouse bell cheesecake investment binder surfer senior liquid highlighter granola gnome dice tub tech sign sandbox
salmon minnow menu macaroon macaroni hit haircut folder dryer dragon crab county wire twig textbook straw spa salon
poodle hospital fundraiser client channel boot antacid tissue sneaker sequin refrigerator recess racer guitar groom
elevator crunch cargo tadpole pointer toad cooler oat litter trumpet tournament toddler toast situp screen powder kit
flock chalk chain caramel bun spacecraft website vendor supplier subscription squat slide silverware scissors highway
fountain florist fisherman entrance detergent baggie athlete article activity appetizer tower tab reunion rancher pickle
omelet mower membership frosting carpet bookstore accessory utility toothbrush toll strip sled seagull scholarship paw
lottery kernel gallery footage cutlery blouse almond spaceship seller relay lipstick kibble human horseshoe grandparent
gemstone firewood cupboard craft cookout chest bronze bandage vet tricycle theme system swallow stationery sailor reward
rack quilt playlist pickup papaya mink mailman leopard league lawnmower hose heater hanger flute centerpiece cave
caffeine belt auction velvet tuna topping toenail starfish smoothie smartphone sidewalk rung parakeet panda orphanage
hive hawk gecko film colony claw carpenter campsite campaign builder buffet aluminum whistle soy slipper session
security sapling rooster pod pill mayor magnet librarian lasagna lady jerky government geography fencing dive department
cottage contact clover catfish cabinet buyer bowling bookmark birdseed beaver artwork artist unicorn survey stocking
stable souvenir sandcastle perfume nest mosquito magician lily jug jail hippopotamus helmet gear exhibit elder eel
dandelion curtain crane alligator adoption monitor vlog dose flagstone everything everyone mechanic accountant bamboo
loan pepperoni amusement goldfish flagpole stage mall spot recipe piggy expense earnings goods gum chip rotation
reflection curve coordinate May March April August January February June July September October November December brand
century chairman club colleague committee council dance debate device district economy editor election event festival
fiction firm flood footprint gathering genre handbag inn jet journal license mansion meadow melody merchant mixture
monument motel neighbour opera orchestra palace pharmacy physics pilot pipe pirate planner poet police politician
portfolio professor protein pump rail recording researcher retailer sculpture secretary shepherd shopper shuttle
specialist spice statue subway suitcase tailor technician technology telephone telescope trader tradition trailer tribe
truckload tunnel university vaccine venue veteran violin voyage waiter waitress waterfall wilderness adventure agency
alarm alley alphabet ambulance anniversary antique apron archer architect arrow attic author balcony barn basement
bathtub beard beehive beverage blender boutique cable calendar canvas captain caravan cliff cloth cloud cocktail
convention cookbook costume courtyard creek cruise daycare dictionary donor drought dwarf earthquake encyclopedia estate
fairy farmland faucet fern fiber fireplace fleet fog gate harbor helicopter herb hostel housing instructor instrument
intern ivory ketchup kettle kindergarten knight ladder leather lounge marina mosaic mural mustard nectar nursery oven
paddle painter palm parade pillar platform porcelain port prairie preschool princess queen radiator rainbow reef rescue
robe rocket rodent sandal scanner scooter scroll seaside shrub skeleton skyscraper snowman sofa sparrow spinach stove
stream swamp sword tablecloth tanker tenant thermos timber toaster troop trunk vein vine volleyball wizard
"""
_QUALITIES = """
red blue green yellow black white pink purple orange brown gray grey golden silver colored colorful striped wooden
plastic metal paper glass cotton leather small large big tiny huge tall young new fresh ripe sweet delicious healthy
hungry happy different distinct unique whole full additional available current entire regular free local nearby
chocolate vanilla strawberry blueberry baked cooked frozen fried mathematical geometric triangular
rectangular square circular convex isosceles equilateral inscribed ordered
"""
_GIVEN_NAMES = """
Aaron Abigail Adam Alan Albert Alex Alexa Ali Alice Alicia Allan Allen Allie Alyssa Amanda Amber Amy Andrea Andrew Andy
Angela Ann Anna Anne Annie Anthony April Arnold Arthur Ashley Austin Ava Bailey Barbara Barry Beatrice Becky Bella Ben
Benjamin Benny Bert Beth Betty Bianca Bill Billy Blake Bob Bobby Bonnie Brad Brandon Brenda Brian Bridget Brittany Bruce
Bryan Caleb Calvin Carl Carla Carlos Carly Carmen Carol Carolyn Carrie Carson Carter Casey Catherine Chad Charles
Charlie Charlotte Chen Cheryl Chloe Chris Christian Christina Christine Cindy Claire Clara Cody Cole Connie Connor Craig
Daisy Dale Dan Dana Daniel Danny Dave David Dawn Dean Debby Dennis Derek Diana Diane Diego Don Donald Donna Dorothy Doug
Drew Dylan Ed Edward Elizabeth Ella Ellen Elsa Emily Emma Eric Erica Erin Ethan Eugene Evan Eve Evelyn Faye Frank Fred
Gabriel Gary George Georgia Gerald Gina Gordon Grace Greg Gretchen Gwen Haley Hannah Harold Harry Heather Helen Henry
Hilt Hunter Ian Irene Isabel Isabella Ivan Jack Jackie Jackson Jacob Jake James Jamie Jan Jane Janet Janice Jared
Jasmine Jason Javier Jay Jean Jeff Jen Jenna Jennifer Jenny Jeremy Jerome Jerry Jess Jesse Jessica Jessie Jill Jim Jimmy
Joan Joe Joey John Johnny Johnson Jon Jonah Jonathan Jones Jordan Jose Joseph Josh Joshua Joyce Juan Judy Julia Julie
Justin Kaleb Karen Kate Katie Kayla Keith Kelly Ken Kendra Kenny Kevin Kim Kimberly Kris Kyle Kylie Lana Lara Larry
Laura Lauren Lawrence Lee Leila Leo Lewis Lexie Lily Linda Lisa Liz Lori Louis Louise Lucas Lucy Luke Madeline Maggie
Mandy Manny Marcia Marco Marcus Marcy Margaret Maria Marie Mario Mark Marta Martha Martin Mary Mason Matt Matthew Megan
Melanie Melissa Mia Micah Michael Michelle Mike Mitch Mitchell Molly Monica Nancy Natalie Nate Nathan Ned Nell Nick
Nicole Nina Noah Oliver Olivia Oscar Paco Paige Pam Parker Pat Patricia Patrick Paul Paula Penny Pete Peter Phil Philip
Phillip Pierre Rachel Ralph Randy Ray Rebecca Richard Rick Rita Rob Robert Robin Roger Ron Ronald Rosa Rose Ruth Ryan
Sally Sam Samantha Sammy Samuel Sandra Sandy Sara Sarah Sasha Scott Sean Seth Shannon Sharon Sheila Shelby Sheridan
Shiela Simon Sofia Sophie Stacy Stan Stanley Stephanie Stephen Steve Steven Sue Susan Susie Sydney Tanya Tara Taylor Ted
Teresa Terry Theo Theresa Thomas Tiffany Tim Timothy Tina Toby Todd Tom Tommy Tony Tracy Trevor Tyler Vanessa Victor
Vincent Virginia Walter Wanda Wendy William Wilson Zach Zachary Zack Zoe
"""


def _forms(verb: str) -> list[str]:
    """A regular verb's forms."""
    ending = "es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"
    if verb[-1] == "y" and verb[-2] not in "aeou":
        return [verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"]
    if verb[-1] == "e":
        return [verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"]
    doubled = verb + verb[-1]
    return [verb, verb + ending, *(f"{stem}{end}" for stem in (verb, doubled) for end in ("ed", "ing"))]


_ALL_VERBS = frozenset([form for verb in _VERBS.split() for form in _forms(verb)])
_ALL_VERBS |= {form for form, verb in IRREGULAR.items() if verb in _ALL_VERBS} | {"led", "tied", "did", "does", "done"}
_ALL_THINGS = frozenset(form for noun in (*_THINGS.split(), *NOUNS) for form in (noun, plural(noun)))
_ALL_QUALITIES = frozenset(_QUALITIES.split())
_NAMES = frozenset(_GIVEN_NAMES.split())


_TIME = "second minute hour day week month year decade morning night weekend season"
_TIMES = frozenset(form for noun in _TIME.split() for form in (noun, plural(noun)))


def is_given_name(word: str) -> bool:
    """Whether a word is a given name: Lucy, or Lucy's."""
    return word.removesuffix("'s").removesuffix("\u2019s") in _NAMES


def is_time(word: str) -> bool:
    """Whether a word names a span of time."""
    return word.casefold() in _TIMES


def is_verb(word: str) -> bool:
    """Whether a word is a form of a main verb that leaves the number behind it as it is."""
    return word in _ALL_VERBS


def is_everyday(word: str) -> bool:
    """Whether a word, in small letters unless it is a name, says nothing about a value."""
    return any(word in words for words in (_ALL_THINGS, _ALL_VERBS, _ALL_QUALITIES, _NAMES, _TIMES))


def is_thing(word: str) -> bool:
    """Whether a word may name a thing."""
    return word in _ALL_THINGS


def is_quality(word: str) -> bool:
    """Whether a word is an adjective alone, and names no thing."""
    return word in _ALL_QUALITIES and word not in _ALL_THINGS
