"""Nouns of things that are counted, behind a number: "12 apples" is 12 where nothing else is said.

A plural alone does not show it: "12 tops" and "12 halves" have one too. So a noun counts if it is here, or if the
question, the reference or the sentence's grammar shows it (`words`, `sentence`).
"""

_THINGS = """
people person student child kid boy girl man woman adult teacher worker employee customer guest visitor friend player
member passenger pupil camper parent family team class classroom baby sibling brother sister neighbor classmate
graduate doctor nurse chef clerk singer actor musician tourist volunteer voter candidate participant attendee
spectator resident soldier clown juror senator scientist engineer officer driver rider runner swimmer dancer animal
dog cat cow horse pig sheep goat chicken hen duck goose bird fish frog rabbit mouse rat bee ant fly worm snail spider
insect bug butterfly beetle ladybug caterpillar cricket grasshopper turtle snake lizard monkey lion tiger bear
elephant kangaroo whale shark dolphin penguin owl parrot pigeon flamingo puppy kitten pup lamb calf cub duckling crow
eagle squirrel fox wolf deer giraffe zebra tree plant flower rose tulip daisy orchid sunflower bush leaf branch seed
seedling bulb petal vegetable fruit apple orange banana pear peach plum grape cherry lemon lime mango melon watermelon
pineapple coconut strawberry blueberry raspberry berry tomato potato carrot onion pepper cucumber pumpkin turnip
radish mushroom bean pea nut peanut walnut acorn pecan avocado olive egg cookie cake cupcake pie muffin donut doughnut
brownie biscuit cracker pancake waffle pastry pretzel croissant bagel loaf baguette candy chocolate lollipop jellybean
gumdrop gumball sweet popsicle sandwich pizza burger hamburger hotdog taco burrito meatball sausage fry steak dumpling
noodle salad soup meal snack drink soda juice milkshake bottle jar can carton bag box basket crate packet pack package
bundle bunch barrel bucket tray plate dish bowl pan pot glass mug pitcher spoon fork knife napkin pencil pen marker
crayon eraser ruler notebook book magazine newspaper novel comic page chapter story poem letter envelope stamp
postcard card sticker poster photo photograph picture painting drawing portrait frame paper sheet worksheet lesson
subject course toy doll ball balloon marble block puzzle game kite bead button necklace bracelet ring earring ribbon
gem jewel crystal shirt dress skirt sock shoe hat cap coat jacket sweater scarf glove mitten jersey uniform suit
outfit towel blanket pillow chair table desk bed bookshelf shelf lamp clock watch mirror window door wall room bedroom
house home apartment building floor garden lawn yard park farm field store shop restaurant school hotel office station
factory library church street road bridge bench fence pole brick tile plank rock stone pebble nail screw bolt tool
hammer brush paintbrush rope string stick rod car truck bus van train bicycle bike motorcycle boat ship canoe plane
airplane vehicle wheel tire engine trip ride flight lap ticket coin penny nickel dime token bill medal badge trophy
award flag phone computer laptop tablet machine robot camera television radio battery file movie video song album
episode email message text call commercial advertisement printer calculator piece slice serving helping scoop bite
container tank pool pond sack bale pile stack square triangle rectangle polygon cube diagonal vertex edge face angle
star touchdown strikeout homerun inning shot vote seat jump kick punch pushup time visit chore job gift present leg
arm hand finger toe eye ear tooth wing tail head horn feather bone shell seashell snowflake snowball candle matchstick
toothpick firework lantern flashlight umbrella cd dvd disc record brochure pamphlet flyer invitation ornament
decoration garland wreath vase figurine bouquet skittle dumbbell barbell racket bat puck baseball basketball football
frisbee skateboard widget gadget cell bacterium molecule atom planet moon asteroid island mountain lake river country
city town village nation flavor color species
"""
_OTHER_NOUNS = """
word sentence question problem answer test exam quiz assignment note prize item object thing unit batch row circle
point dot way possibility outcome choice combination permutation arrangement path route handshake number integer digit
prime factor divisor multiple term zero value root solution element subset palindrome match goal case step move
mistake error task project order sale product sample specimen variety example exercise section footnote lemma theorem
grade figure equation
"""
"""Nouns that may say something about a value elsewhere than behind it: "my first guess", "by mistake"."""
_OTHERS = """
pommes livres élèves personnes enfants étudiants œufs bonbons stylos crayons chaises tables arbres fleurs voitures
billes façons points pages objets animaux chiens chats oiseaux poissons garçons filles gâteaux places Äpfel Bücher
Schüler Personen Kinder Studenten Eier Stifte Stühle Tische Bäume Blumen Autos Murmeln Möglichkeiten Punkte Seiten Tiere
Hunde Katzen Vögel Fische Jungen Mädchen Leute Menschen Kekse Karten Kugeln manzanas libros alumnos personas niños niñas
estudiantes huevos caramelos lápices sillas mesas árboles flores coches canicas formas puntos páginas animales perros
gatos pájaros peces galletas naranjas maçãs livros alunos pessoas crianças estudantes ovos lápis cadeiras árvores carros
pontos animais cães meninos meninas biscoitos laranjas maneiras mele libri alunni persone bambini studenti uova matite
sedie tavoli alberi fiori macchine punti pagine animali cani gatti ragazzi ragazze biscotti arance caramelle modi яблок
яблоко яблока книг книги книга человек человека людей детей учеников студентов яиц конфет карандашей стульев столов
деревьев цветов машин шариков способов очков страниц животных собак кошек птиц рыб
苹果 蘋果 书 書 学生 學生 孩子 鸡蛋 雞蛋 糖果 铅笔 鉛筆 椅子 桌子 树 樹 花 车 車 球 人 种 種 方法 动物 動物
狗 猫 貓 鸟 鳥 鱼 魚 橙子 种方法
りんご リンゴ みかん 学生 生徒 子供 鉛筆 本 通り 匹 人
사과 학생 사람 책 연필 가지
"""
"""Things in other languages: French, German, Spanish, Portuguese, Italian, Russian, Chinese, Japanese, Korean."""
_IRREGULAR = "people children men women feet mice geese leaves wolves knives shelves loaves"


def plural(noun: str) -> str:
    if noun.endswith(("s", "x", "z", "ch", "sh", "to")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun[-1] == "y" and noun[-2] not in "aeou" else f"{noun}s"


_PLURALS = frozenset(
    [*map(plural, f"{_THINGS} {_OTHER_NOUNS}".split()), *_IRREGULAR.split(), *_OTHERS.casefold().split()]
)
_SINGULARS = frozenset(f"{_THINGS} {_OTHER_NOUNS}".split())
NOUNS = _THINGS.split()
"""Things that are counted, one of each."""


def is_counted(word: str, may_be_one: bool = False) -> bool:
    """Whether a word names things that are counted; one of them, or a part, only if it `may_be_one`."""
    word = word.casefold()
    return word in _PLURALS or (may_be_one and word in _SINGULARS)
