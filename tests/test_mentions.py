"""Mentions and their values, what supports them, and overlap: held against tables and against rules."""

import json
import re
import unittest
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mentions import FORMS, MENTION, Mention, mentions, number, overlap, unsupported

MANY = settings(max_examples=150, deadline=None, database=None)
DATASET = Path(__file__).resolve().parent.parent / "LexPilot_release_multiturn.json"

# Texts of one value, by kind and value.
SAME: dict[tuple[str, str], str] = {
    ("amount", "10000元"): "1万 1万元 一万块 一万元 10,000元 10000块钱 ￥10000 ¥10,000 １００００元",
    ("amount", "35000元"): "3万5 三万五 3.5万 三点五万 3万5千 35000块",
    ("amount", "2500元"): "两千五百块 2500元 2千5百元 两千五块钱",
    ("amount", "7.5元"): "7块5 七块五 7块5毛 7.5元",
    ("amount", "0.5元"): "5毛 0.5元",
    ("amount", "1083760元"): "108.376万 1083760元",
    ("amount", "200000000元"): "2亿 两亿元 二亿",
    ("date", "3月5日"): "3月5号 三月五日 03月05日 3月5日 ３月５号",
    ("date", "2025年3月5日"): "2025年3月5日 2025-03-05 2025.3.5 2025/3/5 二〇二五年三月五号 25年3月5日",
    ("date", "2025年4月"): "2025年4月 二〇二五年四月 二零二五年四月份",
    ("date", "1998年7月"): "98年7月 1998年七月 一九九八年7月",
    ("date", "2025年"): "2025年 2025年度 二〇二五年",
    ("date", "去年10月1日"): "去年10月1号 去年十月一日",
    ("date", "下月18日"): "下个月18号 下月十八号",
    ("date", "腊月16"): "腊月十六",
    ("date", "15日"): "15号 15日 十五号 十五日",
    ("date", "9:15"): "9点一刻 9:15 9：15 09:15 21点15 九点十五分",
    ("date", "7:30"): "7点半 7点30分 七点半 19:30 七点三十",
    ("date", "12:00"): "12点 0点 24点 十二点整",
    ("figure", "10%"): "10% 10％ 百分之十 百分之10 一成 1成 十分之一",
    ("figure", "50%"): "一半 二分之一 五成 50%",
    ("figure", "0.5%"): "千分之五 百分之零点五 0.5%",
    ("figure", "3个月"): "3个月 三个月",
    ("figure", "2年"): "两年 2年 二年",
    ("figure", "6个月"): "半年 六个月 6个月 0.5年",
    ("figure", "18个月"): "一年半 1年半 1.5年 18个月",
    ("figure", "2.5个月"): "两个半月 2个半月 2.5个月",
    ("figure", "10天"): "10天 十天 10日内",
    ("figure", "2次"): "2次 2回 2趟 2遍",
    ("figure", "120平方米"): "120平方米 120平米 120平 一百二十平",
    ("figure", "980000人"): "98万人 980000人",
    ("figure", "2号楼"): "2号楼 2栋",
    ("figure", "105"): "105 一百零五",
    ("figure", "13800138000"): "13800138000",
    ("figure", "第2天"): "第2天",
}
NO_MENTION = {
    "vague": "几个月 十几万 几十万 一点 20多年 2个多月 1万多 3万多块 10余人 三四个月 两三天 七八万 三十来岁 上百块 2点多 20几岁 三十好几",
    "articles and rates": "一年 一个月 一天 一次 一家公司 一张纸 一块",
    "turns of speech": "一下 一些 一起 一直 一样 一定 万一 十分 千万 三番五次 三天两头 这两天 两个 三家 两头 两回事 八角 一式三份 另一半 到一半",
    "ordinals": "第一 第二天 第三条",
    "parts of words": "4S店 A4纸 三轮车 三叔 二手 五金店 两口子 三方 3.1.2",
    "hours that may be points": "三点 两点",
    "too long to be an amount": "1234567890123456789012",
    "relative without a number": "去年 上个月 今年年底",
}
NAMES = "老陈 小李 张某 张某某 王某甲 王师傅 冯姐 周医生 孙经理 刘先生 欧阳老师 马总 王记饭店 “老街”饭店 A公司 工商银行 老周家"
NO_NAMES = (
    "老板 老人 老公 老高 老毛病 养老钱 小程序 小孙子 小范围 小区 小黄车 那张老板 任何律师 对方律师 收钱老板 关总阀 费姐弟 王某些"
    " 婚纱店 建筑公司 保险公司 一家银行 4S店"
)

# Reply, known texts, the texts of the mentions that come out.
SUPPORT: list[tuple[str, list[str], list[str]]] = [
    ("付了1万元", ["一万块"], []),
    ("付了1万元", ["10000"], []),
    ("付了10000", ["1万元"], []),
    ("付了1万元", ["1.1万"], ["1万元"]),
    ("付了1万元", [], ["1万元"]),
    ("付了1万元", ["没付"], ["1万元"]),
    ("一共800元", ["先付500元", "再付300元"], ["800元"]),
    ("3", ["3个月"], []),
    ("3个月", ["3"], []),
    ("3个月", ["3年"], ["3个月"]),
    ("3元", ["3个月"], ["3元"]),
    ("3月", ["3", "3个月"], ["3月"]),
    ("3", ["3月"], ["3"]),
    ("24个月", ["2年"], ["24个月"]),
    ("第2天", ["2天", "2"], ["第2天"]),
    ("3月5号", ["2025年3月5号"], []),
    ("3月", ["2025年3月5号"], []),
    ("5号", ["3月5日"], []),
    ("2025年", ["2025年3月"], []),
    ("2025年3月5号", ["3月5号"], ["2025年3月5号"]),
    ("2025年3月5号", ["2025年", "3月5号"], ["2025年3月5号"]),
    ("3月6号", ["2025年3月5号"], ["3月6号"]),
    ("去年3月", ["2025年3月"], []),
    ("去年3月", ["3月"], ["去年3月"]),
    ("去年3月", ["今年3月"], ["去年3月"]),
    ("去年3月", ["2025年4月"], ["去年3月"]),
    ("2025年3月", ["去年3月"], ["2025年3月"]),
    ("下午3点", ["15:00"], []),
    ("3点", ["3点半"], ["3点"]),
    ("老王", ["王师傅"], ["老王"]),
    ("老王和小李，2万和3天", ["老王，3天"], ["小李", "2万"]),
    ("两次说起1万元和1万", [], ["1万元", "1万"]),
]

# Reply, detail, known texts, overlap.
OVERLAPS: list[tuple[str, str, list[str], float]] = [
    ("没签合同", "没签合同", [], 1.0),
    ("没签合同。", "他没签合同", [], 0.75),
    ("没签", "没签合同", [], 1 / 3),
    ("签好了", "没签合同", [], 0.0),
    ("没签合同", "没签合同", ["你签合同了吗"], 1.0),
    ("签合同", "没签合同", ["你签合同了吗"], 0.0),
    ("没签合同", "没签合同", ["没签合同"], 0.0),
    ("没签合同", "没签合同", ["没签", "签合", "合同"], 0.0),
    ("没签合同", "", [], 0.0),
    ("", "没签合同", [], 0.0),
    ("没，签，合同", "没签合同", [], 1 / 3),
    ("没签，合同", "没签，合同", [], 1.0),
    ("ＡＢ", "ab", [], 1.0),
    ("两千块", "2000元", [], 1 / 4),
    ("2000块", "2000元", [], 3 / 4),
    ("两千块", "2000元", ["2000"], 0.0),
    ("2000块", "2000元", ["两千块"], 2 / 3),
    ("3月5日", "3月5号", ["付"], 3 / 4),
    ("二〇二五年三月五日", "3月5号", [], 1 / 4),
    ("3月", "2025年3月", [], 1 / 7),
]

PLACE_VALUES = [(10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")]
DIGITS = "零一二三四五六七八九"


def chinese(value: int) -> str:
    """A positive integer below 10^12 in Chinese numerals, with 零 where a place is passed over."""
    for scale, place in PLACE_VALUES:
        if value >= scale:
            head, rest = divmod(value, scale)
            gap = "零" if 0 < rest < scale // 10 else ""
            return chinese(head) + place + gap + (chinese(rest) if rest else "")
    return DIGITS[value]


def in_myriads(value: int) -> str:
    """In 万, to the last digit: 12.345万."""
    return f"{value // 10_000}.{value % 10_000:04}".rstrip("0").rstrip(".") + "万"


def values(text: str) -> list[tuple[str, str]]:
    return [(mention.kind, mention.value) for mention in mentions(text)]


TEXTS = st.text(max_size=40) | st.text(
    alphabet="一二两三十百千万亿零〇0123456789.,:年月日号点个半元块毛第几多来成%分之去今王老小总某“”A店，。 ０％",
    max_size=40,
)


class Forms(unittest.TestCase):
    def test_every_spelling_of_one_thing_has_its_value(self) -> None:
        for (kind, value), spellings in SAME.items():
            for text in spellings.split():
                with self.subTest(text=text):
                    self.assertEqual([(kind, value)], values(text))

    def test_a_form_that_is_no_mention_is_none_alone_or_within_a_sentence(self) -> None:
        for reason, texts in NO_MENTION.items():
            for text in texts.split():
                with self.subTest(reason, text=text):
                    self.assertEqual([], mentions(text))
                    self.assertEqual([], mentions(f"他说{text}，就走了"))

    def test_a_name_is_seen_by_its_form_and_stands_as_its_own_value(self) -> None:
        for text in NAMES.split():
            with self.subTest(text=text):
                name = text.removesuffix("家")
                self.assertEqual([Mention("name", name, name)], mentions(f"我跟{text}说过"))

    def test_a_word_that_only_looks_like_a_name_is_none(self) -> None:
        for text in NO_NAMES.split():
            with self.subTest(text=text):
                self.assertEqual([], mentions(f"我跟{text}说过"))

    def test_mentions_come_in_order_as_they_stand_and_the_longest_wins(self) -> None:
        text = "２０２５年3月5号晚上7点半，王师傅收了一万二千块，20万30天，1万2千，3万5个月。"
        self.assertEqual(
            [
                Mention("date", "２０２５年3月5号", "2025年3月5日"),
                Mention("date", "7点半", "7:30"),
                Mention("name", "王师傅", "王师傅"),
                Mention("amount", "一万二千块", "12000元"),
                Mention("amount", "20万", "200000元"),
                Mention("figure", "30天", "30天"),
                Mention("amount", "1万2千", "12000元"),
                Mention("amount", "3万", "30000元"),
                Mention("figure", "5个月", "5个月"),
            ],
            mentions(text),
        )

    def test_a_unit_that_only_begins_another_word_is_not_taken(self) -> None:
        rows = [
            ("9000块砖", ("figure", "9000")),
            ("12万本金", ("amount", "120000元")),
            ("30万里头", ("amount", "300000元")),
            ("38000回家", ("figure", "38000")),
            ("3年级", ("figure", "3")),
            ("20万一年", ("amount", "200000元")),
            ("3万一分没给", ("amount", "30000元")),
            ("1万多少", ("amount", "10000元")),
        ]
        for text, expected in rows:
            with self.subTest(text=text):
                self.assertEqual([expected], values(text))

    @MANY
    @given(st.integers(1, 10**8 - 1))
    def test_an_integer_has_one_value_in_every_spelling(self, value: int) -> None:
        expected = [("amount", f"{value}元")]
        for text in (f"{value}元", f"{value:,}元", f"{in_myriads(value)}元", f"{value}块钱"):
            self.assertEqual(expected, values(text), text)
        self.assertEqual(value, number(chinese(value)))
        self.assertEqual([] if value == 1 else expected, values(f"{chinese(value)}元"))

    @MANY
    @given(st.integers(1950, 2049), st.integers(1, 12), st.integers(1, 31))
    def test_a_date_has_one_value_in_every_spelling(self, year: int, month: int, day: int) -> None:
        digits = "".join(DIGITS[int(digit)] for digit in str(year))
        months, days = (chinese(figure).replace("一十", "十") for figure in (month, day))
        for text in (f"{year}年{month}月{day}日", f"{year}-{month:02}-{day:02}", f"{digits}年{months}月{days}号"):
            self.assertEqual([("date", f"{year}年{month}月{day}日")], values(text), text)

    def test_a_share_of_nothing_is_read_as_bare_figures(self) -> None:
        self.assertEqual([("figure", "0"), ("figure", "1")], values("0分之1"))

    @MANY
    @given(TEXTS)
    def test_mentions_of_any_text_stand_in_it_one_after_the_other(self, text: str) -> None:
        at = 0
        for mention in mentions(text):
            at = text.index(mention.text, at) + len(mention.text)
            self.assertTrue(mention.text and mention.value)
        self.assertLessEqual(at, len(text))

    def test_the_look_at_the_first_character_hides_no_form(self) -> None:
        width = str.maketrans("０１２３４５６７８９．：％￥", "0123456789.:%¥")
        texts = [*SAME.values(), *NO_MENTION.values(), NAMES, NO_NAMES]
        for case in json.loads(DATASET.read_text(encoding="utf-8"))[::6]:
            texts += [message["content"] for message in case["complete_consultation"]]
        every_form = re.compile(FORMS)
        for text in texts:
            plain = text.translate(width)
            from_first = [found.span() for found in every_form.finditer(plain)]
            looked_at = [found.span() for found in MENTION.finditer(plain)]
            self.assertEqual(from_first, looked_at)


class Support(unittest.TestCase):
    def test_what_is_unsupported(self) -> None:
        for reply, known, expected in SUPPORT:
            with self.subTest(reply=reply, known=known):
                self.assertEqual(expected, [mention.text for mention in unsupported(reply, known)])

    def test_known_texts_may_come_from_a_generator(self) -> None:
        self.assertEqual([], unsupported("1万和3天", (text for text in ("3天", "1万"))))

    @MANY
    @given(TEXTS, st.lists(TEXTS, max_size=2))
    def test_a_reply_supports_itself(self, reply: str, others: list[str]) -> None:
        self.assertEqual([], unsupported(reply, [*others, reply]))

    @MANY
    @given(TEXTS)
    def test_nothing_known_supports_nothing(self, reply: str) -> None:
        self.assertEqual(mentions(reply), unsupported(reply, []))

    @MANY
    @given(st.integers(2, 10**6), st.integers(2, 10**6))
    def test_only_the_same_number_supports_a_number(self, said: int, known: int) -> None:
        for unit, other in (("元", ""), ("", "元"), ("个月", "个月"), ("", "")):
            self.assertEqual(said == known, not unsupported(f"{said}{unit}", [f"{known}{other}"]), (unit, other))


class Overlap(unittest.TestCase):
    def test_how_much_is_told(self) -> None:
        for reply, detail, known, expected in OVERLAPS:
            with self.subTest(reply=reply, detail=detail, known=known):
                self.assertAlmostEqual(expected, overlap(reply, detail, known))

    def test_known_texts_may_come_from_a_generator(self) -> None:
        self.assertEqual(3 / 4, overlap("没签合同", "没签合同，三天", (text for text in ("3天", "没"))))

    @MANY
    @given(TEXTS, TEXTS, st.lists(TEXTS, max_size=2))
    def test_it_is_a_share_and_the_whole_of_it_when_the_reply_holds_the_detail(
        self, reply: str, detail: str, known: list[str]
    ) -> None:
        self.assertTrue(0 <= overlap(reply, detail, known) <= 1)
        whole = overlap(f"{reply}。{detail}。", detail, known)
        self.assertIn(whole, (0.0, 1.0))
        self.assertEqual(whole, overlap(detail, detail, known))
        self.assertEqual(0.0, overlap(reply, detail, [*known, detail]))


if __name__ == "__main__":
    unittest.main()
