"""What a Chinese text states exactly (amounts, dates, figures, names), and how much of it other texts bear out.

Made for lay clients' talk about a case: 1万, 一万块 and 10,000元 are one amount. Mentions are found by their form alone,
without a dictionary, and precision goes before recall. Not seen:

- vague quantities (几个月, 十几万, 两三天, 20多年, 这两天), ordinals in Chinese numerals (第一, 第二天) and set phrases;
- of Chinese numerals a lone 一 before a unit (一年, 一个月: more often an article or a rate than a count), a lone digit
  before a word not among `COUNTING` (两个, 三家), a lone digit as the hour (三点, but for 下午三点 and 三点半);
- digits that touch a Latin letter (4S店, A4), a word after digits not among `UNITS` (they are a bare figure);
- the half of the day (下午3点 and 15点 are 3点 as well), parts of a month (3月底 is 3月), holidays (五一), 去年 or 上个月
  without a number after it;
- full names (李建国), nicknames (阿坤, 三叔), and most firms, since form cannot tell where a longer name begins, nor that
  建筑公司 is none: seen are “老街”饭店, AB公司, 王记饭店 and the best-known banks.

What follows from known facts is not known: with 500元 and 300元 known, 800元 is unsupported, and so are 24个月 for 2年,
2025年 for 去年 and 老王 for 王师傅.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["amount", "date", "figure", "name"]


class Mention(NamedTuple):
    """Something stated exactly; mentions of the same thing have the same value."""

    kind: Kind
    text: str
    """As it stands in the text."""
    value: str
    """With plain digits and one word for each unit: 20000元, 2025年3月5日, 9:30, 3个月, 10%; a name as it stands."""


# ----------------------------------------------------------------------------------------------------------------------
# Numerals. Own code: it is short, and cn2an 0.5 also installs stray packages by the names of `build` and `example`.

PLACES = {"亿": 10**8, "万": 10**4, "千": 1000, "百": 100, "十": 10}
PLAIN_DIGITS = str.maketrans("零〇一二两三四五六七八九点", "001223456789.", ",")


def number(numeral: str) -> Decimal:
    """The value of a numeral in either script or in both: 2,000, 两千, 1.2万, 3万5 (which is 35,000), 二〇二五."""
    for place, scale in PLACES.items():
        head, found, tail = numeral.rpartition(place)
        if found:
            below = scale // 10 if len(tail) == 1 else 1
            return (number(head) if head else Decimal(1)) * scale + (number(tail) * below if tail else 0)
    return Decimal(numeral.translate(PLAIN_DIGITS))


def plain(value: Decimal) -> str:
    """The digits of a number: 20000, 0.5."""
    return f"{value.normalize():f}"


DIGIT = "[一二两三四五六七八九]"
RUN = "[零〇一二两三四五六七八九十百千万亿]"
CHINESE = (
    rf"(?:{DIGIT}点{DIGIT}{{1,4}}[万亿]|(?:[零〇]?{DIGIT}[十百千万亿]{{1,3}}|十[万亿]*){{1,12}}(?:[零〇]?{DIGIT})?|{DIGIT})"
    rf"(?!{RUN})"
)
# 3万5 and 1万2千 are one numeral, 3万5个月 and 20万30天 are two.
LATIN = (
    r"(?<![\d.A-Za-z])(?:\d{1,3}(?:,\d{3})+|\d{1,20})(?:\.\d{1,9})?"
    r"(?:[十百千万亿]{1,3}(?:[1-9](?:[千百](?:[1-9]百)?|\d{3})?(?![\d.%年月日号点分个天次周岁成人十百千万亿]))?)?"
    r"(?![十百千万亿A-Za-z]|(?<=\d)\d|\.\d)"
)
NUMERAL = f"(?:{LATIN}|{CHINESE})"

# ----------------------------------------------------------------------------------------------------------------------
# Forms

SYNONYMS = (
    "元 块钱 块 圆; 角 毛; 个月 月; 天 日; 周 个星期 个礼拜 星期 礼拜; 小时 个小时 钟头 个钟头; 秒 秒钟; 岁 周岁; 次 回 趟 遍; "
    "人 个人 名 位; 平方米 平米 平方 平 ㎡; 号楼 栋"
)
OTHER_UNITS = (
    "年 分钟 公里 米 厘米 公斤 斤 吨 亩 度 倍 折 个 张 份 页 笔 件 套 台 辆 间 层 楼 号 户 条 只 项 期 级 批 家 股 本 根 瓶 盒 箱 袋 桌 "
    "棵 顿 针 场 封 把 道 处 行 罐 支 段 节 句 字 枚 双 副 组 排 株 颗 门 扇"
)
UNITS = {word: words.split()[0] for words in SYNONYMS.split(";") for word in words.split()}
UNITS |= {word: word for word in OTHER_UNITS.split()}
"""A unit's words -> the one that stands for them in a value."""
COUNTING_WORDS = "元 块钱 个月 年 天 日 周 个星期 个礼拜 小时 个小时 钟头 个钟头 分钟 岁 周岁 级 倍"
COUNTING = frozenset(COUNTING_WORDS.split())
"""The words before which a lone Chinese digit counts something: 两个, 三家 and 两遍 are too often turns of speech."""
# What only begins like a unit: 9000块砖, 3年级, 8000本来.
NO_UNIT = (
    "块[砖玻纱板牌地表石布]|年[级纪轻]|月[薪租供]|日[均薪租]|家[里人长具庭]|位[置于]|名[字下义]|行[业为]|本[人地来]"
    "|期间|项目|条件|回[来去家]|把[他她我钱]"
)
# After 万 fewer words are units: 12万本金, 30万里头.
AFTER_MYRIADS = "(?:(?<![万亿])|(?=元|块|个?人|次|公里|平方?米|股|斤|吨|字))"
UNIT = f"(?!{NO_UNIT}){AFTER_MYRIADS}(?:{'|'.join(sorted(UNITS, key=len, reverse=True))})"
VAGUE = rf"(?!(?:点|{UNIT})?(?:多(?![少次])|余)|好?几|来(?=[个天岁年块万斤次里号人口平分家]))"

SET_PHRASES = (
    "三天两头|一年半载|三年五载|五花八门|七上八下|乱七八糟|三番五次|两回事|百八十"
    "|十分(?![钟之])|[这那前过头]两(?:[天日年]|个月)"
)

MONTH = rf"(?:1[0-2]|0?[1-9]|十[一二]?|[二三四五六七八九]|一(?=月(?:份|(?:\d\d?|{RUN}{{1,3}})[日号]))|(?<=年)一)月份?"
DAY = rf"(?:[12]\d|3[01]|0?[1-9]|[二三]?十{DIGIT}?|{DIGIT})"
YEAR = (
    rf"(?:(?:19|20)\d\d|(?:一九|二[零〇])[零〇一二三四五六七八九]{{2}}|\d\d(?=年\d\d?月)"
    rf"|(?:大?前|去|今|明|后|当|同|次)(?=年{MONTH}))年"
)
DATE = (
    r"(?<![\d.])(?:\d{4}(?P<mark>[-./])\d\d?(?P=mark)\d\d?(?!\d)"
    rf"|[正冬腊]月(?:初[十一二三四五六七八九]|廿{DIGIT}|[二三]?十{DIGIT}?)"
    rf"|(?:{YEAR}(?:{MONTH})?|{MONTH}|(?:上个?|下个?|本|这个|当|次)月(?={DAY}[日号]))(?:(?<=[月份]){DAY}[日号])?"
    rf"|(?!一号){DAY}号(?![楼房线桌车门机院仓铺柜室厅码])|(?!{DIGIT}日){DAY}日(?!内|以内|之内|均|薪|租|工))"
)
MINUTES = rf"(?:半|[一三]刻|[0-5]\d分?|\d分|[二三四五]?十{DIGIT}?分?|[零〇]?{DIGIT}分)(?![\d元块万%个天])"
TIME = (
    rf"(?<![\d.])(?:(?:[01]?\d|2[0-4])(?:点(?!多|来|[意要理建])(?:{MINUTES}|[钟整])?|:[0-5]\d(?![\d:]))"
    rf"|(?:十[一二]?|{DIGIT})点(?:{MINUTES}|[钟整])"
    rf"|(?<=早上|晚上|上午|中午|下午|凌晨|夜里|半夜|傍晚)(?:十[一二]?|{DIGIT})点(?!多))"
)
SHARE = (
    rf"(?:[1-9]\d{{0,3}}|{CHINESE}|[百千万])分之(?:(?:{CHINESE}|零)(?:点{RUN}{{1,4}})?|百|{LATIN})"
    rf"|{NUMERAL}%|{NUMERAL}成(?![立为了功本交家年员分品绩长熟人])|(?<![到另了])一半"
)
COUNT = (
    rf"(?P<sign>¥)?(?P<ordinal>第(?=\d))?(?:(?P<number>{NUMERAL}){VAGUE}(?P<and_half>个半(?=[月小钟星礼]))?"
    rf"|(?<![大小多上下前后一两几])半(?=年|个月|个?小时|个?钟头))(?P<unit>{UNIT})?"
    rf"(?P<half>(?<=[年天斤亩岁块])半(?![夜路截道价]))?(?:(?<=[块元])(?P<dime>[1-9]|{DIGIT})(?:[毛角]|(?![\w%])))?"
)

SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田姜范方石姚谭廖邹熊金陆郝孔白崔"
    "康毛邱秦江史顾侯邵孟龙段雷钱汤尹黎易武乔贺赖龚文庞樊兰殷施陶洪翟颜倪严牛温芦季俞鲁葛伍韦申尤毕聂丛焦柳邢岳齐梅莫庄辛祝左涂谷祁舒耿詹关苗凌费靳童甄"
)
SURNAME = f"(?:欧阳|[{SURNAMES}])"
# 这张, 任何, 对方, 押金, 工钱 end like a surname.
NO_SURNAME = r"(?<![这那一两几每半\d][张段周])(?<![任如]何)(?<![对双甲乙]方)(?<![现佣押定租保年基资奖罚本]金)(?<![工给还欠付收]钱)"
TITLE = (
    "先生|女士|小姐|师傅|经理|律师|老师|医生|大夫|老板|主任|校长|所长|队长|厂长|院长|书记|会计|警官|法官|教练|阿姨|大爷|大妈"
    "|[姐哥嫂婶](?![弟妹夫俩们])"
    "|总(?![是共归算额数体得之的计经监部结价该阀])"
)
FIRM = "(?:(?:有限)?公司|集团|银行|[工药]?厂|医院|学校|超市|餐厅|[酒饭]?店|饭馆|[商银]行)"
NAME = (
    rf"{SURNAME}{NO_SURNAME}(?:某(?:某|[甲乙丙丁])?(?![个些种])|{TITLE})|{SURNAME}[记氏]{FIRM}"
    r"|(?:(?<![养古苍衰])老|(?<![大缩最弱幼])小)"
    r"(?![高金白毛汤石叶熊龙牛温]|黄[牛历瓜车鱼狗]|江湖|方[子桌]|田地|程序|范围|苏打|孙[子女儿]|马[路甲虎扎驹]|周末|钱)"
    rf"{SURNAME}"
    rf"|[“「『《]\w{{1,12}}[”」』》]{FIRM}|(?<![\dA-Za-z])[A-Z][A-Za-z]*{FIRM}"
    "|(?:工商|农业|建设|交通|招商|邮储|邮政储蓄|浦发|民生|中信|平安|兴业|中国)银行"
)
FORMS = (
    rf"(?:{SET_PHRASES}|第{RUN}+|[几数]{RUN}+)|(?P<date>{DATE})|(?P<time>{TIME})|(?P<share>{SHARE})|(?P<count>{COUNT})"
    rf"|(?P<name>{NAME})|{RUN}+"  # the last: a numeral of no other form is passed over as a whole
)
# What a form begins with, looked at first: most characters begin none, and this takes a quarter of the time.
STARTS = rf"[\d¥第几数半{RUN[1:-1]}乱这那前过头正冬腊大去今明后当同次上下本老小“「『《A-Z工农建交招邮浦民中信平兴欧{SURNAMES}]"
MENTION = re.compile(f"(?={STARTS})(?:{FORMS})")

# ----------------------------------------------------------------------------------------------------------------------
# Values

HALF_WIDTH = str.maketrans("０１２３４５６７８９．：％￥", "0123456789.:%¥")
PLAIN_NUMERAL = re.compile(rf"(?:\d|{RUN})+")
NUMERIC_DATE = re.compile(r"(\d+)[-./](\d+)[-./](\d+)")
DATE_PART = re.compile(r"([^年月日号]+)([年月日号]?)份?")
TIME_MARK = re.compile("[点:]")
MINUTE_WORDS = {"": "0", "半": "30", "一刻": "15", "三刻": "45"}


def _date(found: re.Match[str]) -> tuple[Kind, str]:
    value = ""
    for said, of in DATE_PART.findall(NUMERIC_DATE.sub(r"\1年\2月\3日", found[0])):
        if PLAIN_NUMERAL.fullmatch(said):
            said = plain(number(said))
            if of == "年" and len(said) == 2:
                said = ("19" if said > "50" else "20") + said
        value += said.replace("个", "") + of.replace("号", "日")
    return "date", value


def _time(found: re.Match[str]) -> tuple[Kind, str]:
    hour, minutes = TIME_MARK.split(found[0].rstrip("分钟整"))
    return "date", f"{(int(number(hour)) - 1) % 12 + 1}:{int(number(MINUTE_WORDS.get(minutes, minutes))):02}"


def _share(found: re.Match[str]) -> tuple[Kind, str]:
    whole, over, part = found[0].partition("分之")
    if over:
        return "figure", plain(number(part) * 100 / number(whole)) + "%"
    return "figure", plain(
        number(whole[:-1]) * (10 if whole[-1] == "成" else 1) if whole != "一半" else Decimal(50)
    ) + "%"


def _count(found: re.Match[str]) -> tuple[Kind, str] | None:
    """An amount or a figure; None for a Chinese numeral too short to be told from an article or a part of a word."""
    said, word, half = found["number"], found["unit"] or "", found["and_half"] or found["half"]
    if said and not half and (said == "一" or (re.fullmatch(DIGIT, said) and not (word in COUNTING or found["dime"]))):
        return None
    value = (number(said) if said else Decimal(0)) + (Decimal("0.5") if half or not said else 0)
    value += number(found["dime"]) / 10 if found["dime"] else 0
    unit = UNITS.get(word, "")
    if unit == "角":
        value, unit = value / 10, "元"
    if unit == "年" and value % 1:
        value, unit = value * 12, "个月"
    if unit == "元" or found["sign"] or (not unit and said and re.search("[万亿]", said)):
        return "amount", plain(value) + "元"
    return "figure", (found["ordinal"] or "") + plain(value) + unit


READERS: dict[str, Callable[[re.Match[str]], tuple[Kind, str] | None]] = {
    "date": _date,
    "time": _time,
    "share": _share,
    "count": _count,
    "name": lambda found: ("name", found[0]),
}


@lru_cache(maxsize=1024)  # histories come back for every reply to them
def _mentions(text: str) -> tuple[Mention, ...]:
    found_there = MENTION.finditer(text.translate(HALF_WIDTH))
    read = ((found, READERS[found.lastgroup](found)) for found in found_there if found.lastgroup)
    return tuple(Mention(stated[0], text[slice(*found.span())], stated[1]) for found, stated in read if stated)


def mentions(text: str) -> list[Mention]:
    """The mentions of a text in order, without overlaps: 2025年3月5号 is one date. Amounts have no more than 20 digits."""
    return list(_mentions(text))


# ----------------------------------------------------------------------------------------------------------------------
# Support

VALUE_PARTS = re.compile(r"\d+:\d+|[^年月日:]+(?:[年月日]|$)")
RELATIVE_YEAR = re.compile(r"\D+年")
QUANTITY = re.compile(r"(第?[\d.]+)(.*)")


def _supports(known: Mention, mention: Mention) -> bool:
    """Whether one text's mention says all that another's says: the same, or the same and more."""
    if known.value == mention.value:
        return True
    if mention.kind == "date" == known.kind:
        more, said = set(VALUE_PARTS.findall(known.value)), set(VALUE_PARTS.findall(mention.value))
        if re.match(r"\d{4}年", known.value):
            said = {part for part in said if not RELATIVE_YEAR.fullmatch(part)}
        return said <= more
    quantities = QUANTITY.fullmatch(known.value), QUANTITY.fullmatch(mention.value)
    if {"date", "name"} & {known.kind, mention.kind} or not (quantities[0] and quantities[1]):
        return False
    return quantities[0][1] == quantities[1][1] and "" in (quantities[0][2], quantities[1][2])


def unsupported(reply: str, known: Iterable[str]) -> list[Mention]:
    """The mentions of a reply that no known text states.

    The same fact may be said less exactly: 3月5号 where 2025年3月5号 is known, 去年3月 where 2025年3月 is (that 2025 was last
    year is not checked), 3 where 3个月 or 3元 is and the other way round. The number itself must be the same. Two known
    dates do not support their union, and a sum of known figures is unsupported.
    """
    stated = [mention for text in known for mention in _mentions(text)]
    return [mention for mention in _mentions(reply) if not any(_supports(other, mention) for other in stated)]


# ----------------------------------------------------------------------------------------------------------------------
# Overlap

WORD_RUN = re.compile(r"[^\W_]+")


@lru_cache(maxsize=1024)
def _bigrams(text: str) -> frozenset[str]:
    runs = WORD_RUN.findall(unicodedata.normalize("NFKC", text).lower())
    return frozenset(first + second for run in runs for first, second in pairwise(run))


def overlap(reply: str, detail: str, known: Iterable[str]) -> float:
    """How much of what a detail says beyond the known texts stands in a reply, 0 to 1; 0 where it says nothing beyond.

    Counted are the different pairs of neighbouring characters (letters, digits and Chinese characters, whatever their
    width or case; no pair spans punctuation) and besides them the detail's mentions, in any spelling. It measures
    wording: it does not see a detail told in other words, nor that a reply denies it.
    """
    before = list(known)
    pairs = _bigrams(detail).difference(*map(_bigrams, before))
    facts = {mention.value: mention for mention in unsupported(detail, before)}.values()
    told = [fact for fact in facts if any(_supports(said, fact) for said in _mentions(reply))]
    beyond = len(pairs) + len(facts)
    return (len(pairs & _bigrams(reply)) + len(told)) / beyond if beyond else 0.0
