"""The six classes of causes of action by which results are grouped, and the 36 causes in them.

The paper's Appendix D, which holds its own mapping, is not available to us. The class names here are first-level
headings of the Supreme People's Court's list of civil causes (民事案件案由规定, in force since 2026-01-01), so figures
by class are not those of the paper's tables. `CLASSES` is the single place to change.
"""

CLASSES: dict[str, tuple[str, ...]] = {
    "人格权纠纷": (
        "生命权、身体权、健康权纠纷",
        "肖像权纠纷",
        "名誉权纠纷",
        "隐私权、个人信息保护纠纷",
    ),
    "婚姻家庭、继承纠纷": (
        "婚约财产纠纷",
        "离婚纠纷",
        "离婚后财产纠纷",
        "抚养纠纷",
        "赡养纠纷",
        "法定继承纠纷",
        "遗嘱继承纠纷",
    ),
    "物权纠纷": (
        "物权确认纠纷",
        "返还原物纠纷",
        "建筑物区分所有权纠纷",
        "相邻关系纠纷",
        "共有纠纷",
    ),
    "合同、准合同纠纷": (
        "买卖合同纠纷",
        "房屋买卖合同纠纷",
        "民间借贷纠纷",
        "保证合同纠纷",
        "房屋租赁合同纠纷",
        "建设工程施工合同纠纷",
        "物业服务合同纠纷",
        "服务合同纠纷",
        "不当得利纠纷",
    ),
    "劳动争议、人事争议、新就业形态用工纠纷": (
        "确认劳动关系纠纷",
        "追索劳动报酬纠纷",
        "经济补偿金纠纷",
        "竞业限制纠纷",
        "工伤保险待遇纠纷",
    ),
    "侵权责任纠纷": (
        "提供劳务者受害责任纠纷",
        "违反安全保障义务责任纠纷",
        "产品责任纠纷",
        "机动车交通事故责任纠纷",
        "医疗损害责任纠纷",
        "饲养动物损害责任纠纷",
    ),
}

CLASS_OF: dict[str, str] = {cause: name for name, causes in CLASSES.items() for cause in causes}
