"""Everyday words that say nothing about a value: who does what with which things, where and when.

"Lucy picked 50 apples in the garden" states 50, whoever picks them and wherever. Such words are read in the subject of
a sentence, as its main verb and behind what is counted, but a noun is not read right in front of a number ("page 50").
Words that could say more about a number are in none of these lists: of size and degree ("short", "extra"), of
beginning and end, of change ("doubled", "rises"), of rejection ("discard", "remove", "withdraw"), of doubt and of
wishing ("guess", "hope").
"""

from cooper_verify.rules.asked.word_forms import IRREGULAR
from cooper_verify.rules.vocabulary.counted_nouns import NOUNS, plural

_VERBS = """
accommodate arrange arrive attend bake baby-sit barter bike boil borrow bottle bounce brew brush buy bring build call
camp capture carry carve catch chew chop clean climb coach collect color consume cook crochet cycle dance decorate
deliver deposit dig display donate download draw dress drink drive dry earn eat educate employ engrave enjoy enroll
feed fetch fill fish fly fold fry gain garden gather get give go grade graze greet grill grind hang harvest have hike
hire hold host hug hunt ice invite iron jog jump kick knit label laminate lay learn lease lend lift live load lug mail
make manufacture meet milk mop mow nail obtain occupy offer open order own pack paint park pay perform photograph pick
pile place plant play plow possess pour practice prepare present print produce purchase raise read receive record
recycle rent repair ride roast row run sail save saw score sell send serve sew shelve ship shoot shop sing sit skate
sketch ski sleep slice smoke solve sow spend spray stack stand stay stick store study supply swim tag take teach text
trade train transport travel tutor type unload upload vacuum visit walk wash watch water weave wear weed weigh win
wipe work wrap write yield cost need require sum total form leave contribute share split dole hand allocate assign
accumulate gift grow cover reach charge bill lose finish complete organize join put create design invest pedal peel
prune publish pump rake rescue sharpen shave shovel spread sprinkle stuff translate trim unpack wake warm apply attach
award bathe celebrate drill escape explore film hatch inflate install kayak mix mount mend rebuild refill remodel
renovate reserve restock resell sign sort staple stitch swap tow trace vote
"""
_THINGS = """
afternoon air airport aquarium arcade area art aunt avenue backpack backpacker backyard bacon bakery baker band bank
bar barbecue barber bath bathroom beach beef beer biology birth birthday boss boyfriend bread breakfast broccoli brunch
buddy budget business butter cabbage cabin cafe cafeteria cage calcium campus cardboard cash cashier celery cement
cereal champion charity cheese chemistry chess choir christmas cider circus cinema clay clinic closet clothes clothing
coal coach coffee collection college commission community concert concrete contest cook corn cornmeal cotton cousin
crew crop crowd culture curry dad daddy daily daughter dentist dessert diet dinner distance dough downtown driveway
drugstore dust electricity energy equipment essay evening exercise fabric fair farmer fashion father fee feed
fertilizer fiance fishing flour food forest freezer friday fridge fuel fudge fun fur furniture garage garbage gas
gasoline girlfriend glue gold grain grandfather grandma grandmother grandpa grandson grass gravel grocery groceries
ground gym hair hall halloween hay headphone height hobby holiday homework honey household housework husband ice income
ink insurance interest internet jam january jelly jewelry june july kitchen lab laboratory labor lace landlord laundry
lemonade lettuce life lunch luggage lumber machinery maid mail maple market material math maths mathematics mayonnaise
meat medicine metal midnight milk miner mom mommy monday money morning mother mud mum museum music nephew neighborhood
niece night noon november number oak oatmeal ocean october oil online outdoors owner oxygen paint pantry paperwork
parking party pasta patio pay paycheck payroll pet piano picnic pine plastic playground plumber plywood poetry popcorn
pork porch postage president price production profit purse rain ranch rehearsal rent rental repair rice roof rubber
rubbish sail salary salt sand saturday sauce savings scenery schedule science sea season seafood semester september
service sewing shampoo shed shipment shopping shore shower silk silver sky snow soap soccer soil son spaghetti sport
spring stadium staff stair steel stock storage storm studio stuff sugar summer sun sunday sunlight supermarket supper
surgery swimming syrup tape tax taxi tea teeth tennis tent theater theatre thread thursday tofu toothpaste traffic
trail training transport transportation travel trash treasure trim tuesday tuition turkey tutor uncle vacation vanilla
vinegar wage wallet warehouse washing water weather wedding wednesday weekend weekday wheat wife winter woods wool
worth yarn yesterday yoga yogurt youth zoo circle parallelogram trapezoid rhombus pentagon hexagon octagon sphere
cylinder cone pyramid prism tetrahedron parabola ellipse hyperbola line chord arc segment altitude bisector tangent
polynomial equation inequality function grid board array lattice graph diagram figure shape region surface midpoint
origin axis axes company body cream cup drawer ingredient wrapper overtime delivery journey bin bonus allowance action
app bushel carnival coupon junk wood fund construction shelter revenue drum deck trout basil patient mask marathon
copper hockey donation coaster cart carnation wine stitch shrimp raisin patch oyster vampire character birdhouse bell
cheesecake investment binder surfer senior liquid highlighter granola gnome dice tub tech sign sandbox salmon minnow
menu macaroon macaroni hit haircut folder dryer dragon crab county wire twig textbook straw spa salon poodle hospital
fundraiser client channel boot antacid tissue sneaker sequin refrigerator recess racer guitar groom elevator crunch
cargo tadpole pointer toad cooler oat litter web trumpet tournament toddler toast situp screen powder kit flock chalk
chain caramel bun spacecraft website vendor supplier subscription squat slide silverware scissors highway fountain
florist fisherman entrance detergent baggie athlete article activity appetizer tower tab reunion rancher pickle omelet
mower membership frosting carpet bookstore accessory utility toothbrush toll strip sled seagull scholarship paw lottery
kernel gallery footage cutlery blouse almond zombie spaceship seller relay lipstick kibble human horseshoe grandparent
gemstone firewood firecracker cupboard craft cookout chest bronze bandage vet tricycle theme system swallow stationery
sailor reward ravioli rack quilt playlist pickup papaya mink mailman leopard league lawnmower hose heater hanger flute
centerpiece cave caffeine belt auction velvet tuna topping toenail starfish smoothie smartphone sidewalk rung parakeet
panda orphanage hive hawk gecko film colony claw carpenter campsite campaign builder buffet aluminum zit whistle soy
slipper session security sapling rooster pod pill mayor magnet librarian lasagna lady jerky hairspray government
geography fencing dive department cottage contact clover catfish cabinet buyer bowling bookmark birdseed beaver artwork
artist unicorn tattoo swan survey strand stocking stable souvenir sandcastle perfume nest mosquito maize magician lily
jug jail hippopotamus helmet gear exhibit elder eel dandelion curtain crane alligator adoption monitor vlog dose
flagstone everything everyone mechanic accountant bamboo loan pepperoni amusement goldfish flagpole stage mall spot
recipe piggy expense earnings goods gum chip rotation reflection curve coordinate May March April August January
February June July September October November December brand century chairman club colleague committee council dance
debate democracy device district dorm economy editor election employer event festival fiction firm flood footprint
gathering genre handbag hut inn jet journal journalist kingdom lecture license mammal mansion mattress meadow melody
merchant mill mixture monument mosque motel motor neighbour opera orchestra organ outlet palace pavement peasant
photographer pharmacy physics pilot pipe pirate planner poet police politician portfolio prayer prison professor
programme protein pump radar rail railway railroad recording refuge reporter researcher retailer sculpture secretary
servant shareholder shepherd shopper shuttle specialist spice startup statue submarine suburb subway suitcase surgeon
syllabus symphony tailor technician technology telephone telescope temple territory textile tourism trader tradition
trailer tribe truckload tunnel turbine university vaccine venue veteran villa violin vocabulary voyage waiter waitress
warrior waterfall wilderness witness workshop wrestler yacht adventure agency alarm alley alphabet ambulance
anniversary antique apron archer architect arrow attic author baggage balcony balloonist banker barn basement bathtub
beard beehive beverage bishop blender boutique cable calendar canvas captain caravan cathedral cellar chapel cheek
chimney cliff cloth cloud coastline cocktail compass composer conductor convention cookbook costume courtyard cradle
creek cruise cushion dam daycare diary dictionary dome donor doorway drought dwarf earthquake emperor encyclopedia
estate fairy farmland faucet fern fiber fireplace fishery fleet fog folk gang gate gown grammar greenhouse harbor
helicopter herb hero hostel housing inmate instructor instrument intern investor ivory jungle ketchup kettle
kindergarten knight ladder laser leather lounge lord manuscript marina mast mentor microwave midwife missile mosaic
moss mural mustard navy necktie nectar neighbourhood nomad nursery oasis oven paddle painter palm parachute parade
parcel parliament petrol pigment pillar platform plaza pollen porcelain port prairie preschool princess prisoner puppet
queen radiator rainbow reef referee rescue reservoir robe rocket rodent sandal scanner scholar scooter scroll seaside
sergeant shrub skeleton skyscraper smoke snowman sofa sparrow spinach stairway steam steward stove stream swamp
swimsuit sword tablecloth tanker teapot tenant terrace thermos throne timber toaster tobacco tomb tortilla trolley
troop trunk turf vault vein vine vineyard volcano volleyball vulture wagon ward weaver wheelchair windmill windshield
wizard woodland
"""
_QUALITIES = """
red blue green yellow black white pink purple orange brown gray grey golden silver colored colorful striped wooden
plastic metal paper glass cotton leather small large big tiny huge tall young new fresh ripe sweet delicious healthy
hungry happy different distinct unique whole full additional available current entire regular free local nearby
chocolate vanilla strawberry blueberry baked cooked frozen fried mathematical geometric triangular
rectangular square circular convex isosceles equilateral inscribed ordered
"""
_GIVEN_NAMES = """
Aaron Abby Abe Abel Abie Abigail Abraham Adam Adamson Addilynn Addison Adelaide Adele Adhira Adolfo Adrian Adrianna
Agatha Agnes Ahmed Aidan Aira Aiyanna Alan Alannah Albert Alden Alec Aleena Alex Alexa Alexander Alexandra Alexandre
Alexis Alfonso Ali Alia Alice Alicia Alison Alissa Alix Aliyah Allan Allen Allie Allison Allyn Alma Alton Alvin Alyssa
Amalia Amalie Amanda Amaro Amber Ambika Amelia Amir Amoli Amoura Amy Ana Anais Anderson Andre Andrea Andrena Andrew
Andy Angel Angela Angeli Angelina Angelo Angie Angus Anie Anika Anita Aniyah Ann Anna Annalise Anne Annie Annika
Anthony Antoine Anton Antonella Antonia Antonieta Antonio Antonov Anya Apollo April Archibald Archie Aria Ariana Ariel
Ariella Arlo Arman Arniel Arnold Aron Arthur Arvin Arwen Asaf Asha Ashley Ashton Asia Aston Atticus Aubrey Audrey
Augustus Austin Ava Avery Avianna Aylin Azalea Aziz Baez Bailey Barbara Barbie Barney Barry Bart Basil Baylor Bea
Beatrice Beatrix Beau Becky Belinda Bella Belle Ben Benjamin Benjie Benjy Bennett Benny Benson Bernard Bernie Bert
Bess Beth Bethany Betsy Betty Bianca Biff Bill Billie Billy Bingley Binkie Blair Blake Blanch Blanche Blithe Bob
Bobbie Bobby Bodhi Bom Bonnie Boris Bowen Boyd Brad Braden Bradley Brady Braelynn Brandon Brandy Brayan Brayden
Breanna Brenda Brendan Brenden Brennan Brent Bret Brett Brian Brianna Briar Bridget Bridgette Brie Britney Brittany
Brittney Brock Bronson Brooke Bruce Bruno Bryan Buffy Buzz Cade Caiden Caitlin Caleb Callen Cally Calvin Camden
Cameron Camila Candace Candice Cara Carl Carla Carlos Carlson Carlton Carly Carmela Carmen Carol Carole Carolina
Caroline Carolyn Carrie Carson Carter Cary Casey Cassandra Cassidy Cassie Castiel Catherine Cathy Catriona Cecilia
Celestia Celia Celina Celine Cersei Chad Chanarong Chandler Chandra Chantal Chantel Charlene Charles Charley Charlie
Charlize Charlotte Chastity Chelsea Chen Chenny Cherie Cheryl Chetan Cheyenne Chiquita Chiu Chloe Chris Christian
Christina Christine Christopher Christy Chuck Cindi Cindy Cisco Claire Clara Clare Clarence Clarissa Clark Claudia
Clayton Cleo Clinton Clive Clyde Coby Cody Colbert Cole Colin Colleen Collin Colten Colton Conner Connie Connor Conor
Cooper Cora Corey Cori Cornelia Cory Craig Cristian Cristine Cristobal Cruz Crystal Curt Curtis Cynthia Cyrus Dabbie
Daisy Dakota Dale Damien Dan Dana Danai Dane Dani Daniel Daniela Daniella Danielle Danny Dante Dany Daragh Darcy Daria
Darius Darla Darlington Darnell Darrel Darren Darry Darryl Darwin Daryl Davante Dave Davey David Davis Dawn Dean Deane
Debbie Debby Debelyn Deborah Del Delaney Delores Denise Dennis Derek Devin Dexter Diana Diane Diaz Didi Diego Dilan
Dimitri Dina Dino Divya Dolly Don Donald Donna Donny Donovan Dora Doris Dorothy Doug Douglas Drew Duane Dubois Dulce
Dustin Dwayne Dylan Ed Eddie Eden Edgar Edith Edmund Eduardo Edward Eileen Einstein Eithan Elaine Elena Eli Elida
Elijah Elisa Elise Eliza Elizabeth Ella Ellen Ellie Elliot Ellis Elmer Elmo Elodie Elois Elon Elrond Elsa Elsie Elvis
Elyse Elysse Eman Emani Ember Emerie Emery Emile Emiliano Emily Emma Emmalyn Emmanuel Emmy Enid Enrique Enzo Ephraim
Eric Erica Erick Erik Erika Erin Ermias Ernest Ernesto Ernie Estevan Esther Ethan Eugene Eunice Euston Eva Evan Evans
Eve Evelyn Evie Fabian Farah Faye Felicia Felicity Felix Fem Fern Fernanda Finley Fiona Fletcher Floretta Fran Frances
Francie Francine Francis Frank Frankie Franklin Fred Freddy Frederick Fredrickson Freyja Gabby Gabe Gabriel Gabriella
Gabrielle Gail Garret Garrett Gary Gates Gavin Geli Gemma Genevieve Geoff Geoffrey George Georgia Georgie Georgina
Gerald Geric Gerry Gertrude Gervais Gideon Gigi Gilbert Gina Ginger Gino Giselle Giza Gladys Glenda Glenn Gloria
Goldie Gondor Gordon Gordonia Grace Grady Graham Granger Grayson Greg Greta Gretchen Gretel Grey Griffin Grover
Gunther Gus Guy Guzman Gwen Gwendolyn Gwi Hailey Haj Hakimi Haleigh Haley Halima Hallie Hally Hana Hania Hank Hanna
Hannah Hans Hansel Harold Harper Harriet Harris Harrison Harry Haruto Harvey Hasan Hattie Hawkins Hayden Haylee Hayley
Hazel Heath Heather Hector Heidi Heike Heine Helen Helga Heloise Henri Henry Herbert Hermione Hilary Hillary Hilt
Hilton Holly Horatio Howard Hugh Hugo Hunter Hurley Ian Iesha Iggy Imma Ines Inez Ingrid Irene Iris Isaac Isabel
Isabela Isabella Isabelle Ishmael Issac Ivan Ivanka Ivy Jack Jackie Jackson Jaco Jacob Jacqueline Jacques Jade Jaden
Jairus Jake Jamal Jame James Jameson Jamie Jan Jane Janelle Janet Janeth Janice Janina Janine Jared Jaron Jasmine
Jason Jasper Javier Jaxon Jay Jaydee Jayden Jaylen Jaymee Jaynie Jayson Jazmin Jean Jeanine Jeanne Jebb Jed Jeff
Jefferson Jeffrey Jemma Jen Jenn Jenna Jennie Jennifer Jenny Jensen Jenson Jeremie Jeremy Jericho Jermaine Jerome
Jerry Jess Jessa Jesse Jessica Jessie Jessy Jesus Jethro Jett Jezebel Jill Jillian Jim Jimmy Jina Joan Joanie Joanna
Joanne Jocelyn Joe Joel Joey Johann Johanna Johannes John Johnny Johnson Jolene Joline Jolyn Jon Jonah Jonas Jonathan
Jones Jonsey Jordan Jordana Jordyn Jorge Jose Joseph Josh Joshua Josiah Josie Jovana Joy Joyce Juan Juanita Jude Judy
Jules Julia Julian Julie Juliet Julio Junior Juniper Justin Justine Juwan Kai Kaiden Kaleb Kamari Kameron Kannon
Kaplan Kara Karen Karina Karl Karlee Karlene Karsyn Kat Kate Katelyn Katherine Kathleen Kathryn Kathy Katie Katrina
Katy Katya Kay Kayla Kaylee Keanu Keaton Keely Keith Kekai Kelcie Kelly Kelsey Kelvin Ken Kendall Kendra Kendy Kenji
Kenley Kenneth Kenny Kent Kenya Kenzo Kevin Keziah Khalil Kiarra Kiera Kiki Kilee Kiley Kim Kimberly Kimiko Kingsley
Kira Kobe Koby Kody Kona Kris Krista Kristen Kristi Kristin Kristine Kristoff Kristy Kyla Kyle Kylie Lana Lance Lanie
Lara Laran Larry Latia Laura Laurel Lauren Laurie Lauryn Laverne Lavinia Lawrence Layla Leah Lee Leila Lemuel Lena
Lennon Lenny Leo Leon Leonard Leonel Leslie Levi Lewis Lex Lexi Lexie Liam Libby Lidia Lila Lilibeth Lilith Lillian
Lilly Lily Lim Linda Lindsay Lindsey Lino Lionel Lisa Liz Liza Lizette Lizzie Lizzy Lloyd Logan Lois Loisa Lola Lolita
Lopez Loraine Lorene Lori Lorie Lorin Loris Lorraine Lou Loui Louie Louis Louise Lowella Lowry Luca Lucas Lucca Lucia
Lucien Lucille Lucy Ludo Ludwig Luis Luisa Luka Luke Lulu Luna Luther Lydia Lyka Lyle Lyndee Lynn Lynne Lyra Lyssa
Mabel Maciek Macy Maddie Maddox Maddy Madeline Madison Magdalena Maggi Maggie Mairead Maisie Maisy Malachi Malcolm
Malcom Malik Malou Mandy Manny Manu Mara Marc Marcel Marcia Marcie Marco Marcus Marcy Margaret Marge Margo Mari Maria
Mariam Marianne Marie Mariel Marin Marina Mario Marion Marissa Marj Mark Markus Marla Marlee Marlene Marley Marlon
Marly Marnie Marovich Marta Martha Martin Martine Martinez Martiza Marvin Mary Maryann Mason Masud Mateo Mathews
Matias Matilda Matt Matthew Matthews Matthias Matty Maud Maurice Maximilian Maxwell Maya Mayer Mcgregor Megan Mei Mel
Melanie Melany Melina Melissa Mell Melony Meow Merill Merril Meryll Meso Mia Micah Michael Michaela Michel
Michelangelo Michelle Michonne Mickey Miguel Mika Mikaela Mike Mikey Miki Mila Milburg Mildred Milena Miles Miley
Millie Milly Milo Milton Mimi Mindy Miranda Mirasol Miriam Misha Missy Mitch Mitchell Mohamed Mohammad Mohammed Moksi
Molly Mona Monica Monroe Montero Monty Moreland Morgan Morio Moses Myrtle Nacho Nadia Nadine Nala Nalani Nancy Naomi
Napoleon Natalia Natalie Nataly Natasha Nate Nathalie Nathan Nathaniel Ned Nedy Neeley Neil Nell Nellie Nelly Nicholas
Nick Nicky Nicolai Nicole Nigel Nigella Nikka Niko Nikola Nina Nissa Noah Noel Nora Nori Norma Norris Norwich Ofelia
Olaf Olga Olive Oliver Olivia Olivine Omar Omi Oomyapeck Ophelia Oprah Orlan Orlando Oscar Oula Owen Pablo Paco Padma
Paige Paislee Paityn Palmer Pam Pamela Papi Parker Pat Patricia Patrick Patty Pau Paul Paula Pauline Paulo Pauly Pedro
Peggy Penelope Penn Penny Perry Pete Peter Petersons Peyton Phil Philip Phillip Phoebe Phung Pierre Piper Polly Ponce
Porter Prejean Preston Priya Priyanka Puffy Queenie Quincy Quinn Quinton Rachel Radhika Rafael Ragnar Rahim Raine Raj
Ralph Ramon Randy Raul Raven Ravi Ray Rayden Rayman Raymond Rebecca Reed Reese Reeta Reggie Regina Rehana Reina Remi
Remy Rena Rene Renz Resty Rex Reyansh Reynald Rhea Rhett Rhonda Rica Ricardo Richard Richmond Rick Rickey Ricky
Rihanna Riku Riley Rita Rob Robbie Robert Roberta Roberto Roberts Robi Robie Robin Robyn Roden Rodney Roger Rollo
Roman Romina Ron Rona Ronald Ronnie Roque Rory Rosa Rose Roselyn Rosi Rosie Ross Roxanne Roxy Roy Ruby Rudy Ruel
Rupert Russell Russom Ruth Ruths Ryan Sab Sabina Sabrina Sadie Salazar Salem Sally Sam Samanta Samantha Samara Sammy
Samson Samuel Sanchez Sandoval Sandra Sandro Sandy Sangita Sansa Santana Santiago Santino Sanya Sara Sarah Sasha
Savannah Sawyer Scarlett Scott Sean Sebastian Sedrich Selena Selene Selma Serena Sergio Seth Seymour Shane Shaniya
Shannon Shaquira Shara Sharon Shaun Shawn Shawna Sheila Shelby Shelley Shelly Shem Sheridan Sherman Sherry Shiela
Shirley Shyne Sid Sidney Sierra Simon Simpson Skye Skylar Sloan Snyder Sofia Solomon Sonja Sophia Sophie Spaatz
Spencer Stacy Stan Stanley Stefan Stella Steph Stephanie Stephen Steve Steven Stevie Stewart Stuart Sue Suki Sunny
Susan Susie Susy Suzanne Suzie Suzy Sydney Sylvia Tabitha Taegan Talia Tamara Tamika Tammy Tanner Tanya Tapanga Tara
Taso Tate Taylor Tayzia Teagan Teairra Teal Ted Teddy Tenisha Teresa Terese Terez Terrence Terry Tess Tessa Thelma
Theo Theodore Theresa Thomas Thompson Thor Tiffany Tilly Tim Timmy Timothy Tina Tino Tobee Tobias Toby Todd Tom Tomas
Tommy Toni Tony Tonya Tori Tory Traci Tracy Travis Trent Trevor Trey Tricia Tripp Trish Troy Tucker Tully Tyler Tyrah
Tyson Uki Ursula Vaishali Val Valentino Valerie Vanessa Venice Vera Veronica Victor Victoria Vihaan Vincent Vinnie
Viola Violet Virginia Vivi Vivian Viviana Vivienne Voltaire Vondra Wade Wally Walter Wanda Warren Watson Wayne Welly
Wendi Wendy Weng Wesley Whitney Wickham Wilfred William Williams Willie Willy Wilma Wilsborough Wilson Winston Winwin
Wolfgang Wong Woody Wyatt Xavier Xena Xia Yanna Yanni Yasmin Yasna Yeon Ylona Yola Yolanda Yuan Yun Yuri Yusuf Yves
Yvonne Zach Zachary Zack Zain Zander Zane Zara Zendaya Zeshaun Zhang Ziggy Zion Zoe Zola
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
