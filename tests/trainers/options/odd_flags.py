"""Odd texts of a command line: those to refuse, and those that look odd."""

TEXTS = (
    *("", " ", "x", "1.5", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-46"),
    *("5e-324", "1e35", "999999999999", "99999999999999999999", "9" * 5000),
    *("0b1", "None", "True", "1,2", "--1", "1 2", "\0", "1\0", "a\nb", "😀"),
    *("\udcff", "x" * 5000, "\uff11.x", "²", "0x", "1e", "(1)", "'1'", "∞"),
)
"""Values that are wrong for almost every flag."""


SYNTAX = (
    *("(", ")", "()", "NAME(", "NAME)", "NAME()()", "(NAME)", "NAME NAME"),
    *("NAME;", "NAME,", "NAME()#", "NAME.x", "NAME[0]", "'NAME'", "None", "1"),
    *("-" * 5000 + "1", "(" * 5000, "[" * 900, "NAME(" + "(" * 300, "\0"),
    *("NAME(x=" + "-" * 900 + "1)", "NAME(x=" + "[" * 400 + "]" * 400 + ")"),
    *("NAME(x=1, x=1)", "NAME(**{})", "NAME(**{'x': 1}, x=1)", "NAME(*[])"),
    *("NAME(3)", "NAME(x)", "NAME(x:=1)", "NAME(x=open('x'))", "lambda: 0"),
    *("NAME(x=1)", "NAME(self=1)", "NAME(kwargs=1)", "NAME(__class__=1)"),
    *("NAME(name='x')", "NAME(dtype='float16')", "NAME(trainable=False)"),
    *("NAME(x='\\d')", "NAME(x='\0')", "NAME(x='", "NAME(x=0777)", "-NAME"),
    *("NAME(x=" + "9" * 900 + ")", "NAME(😀=1)", "NAME\udcff", "NAME?"),
    *("NAME(x=[1 for _ in ()])", "await NAME", "NAME if 1 else 0", "NAME=1"),
    *("NAME(x=1if)", "NAME(x=1 if 1)", "NAME(x=1 or 2)", "NAME(x=1) or 2"),
)
"""Values that are no call that a flag takes; `NAME` is a name that it takes."""

LENGTHS = (
    *("0", "0-5", "5-1", "1-", "-", "-5", ":", "1:2", "1-5:0", "1-5:", ","),
    *("1-5:-1", "1-5:x", "1--5", "1-5-9", "1-5:1:1", "1,,2", "1,", "1 - 5"),
    *("1.5", "1e3", "a", "+5", "0x5", "1_0", "\uff11", "²", "1-1000000", "1;2"),
    *("99999999999", "1-99999999999", "1048577", "1-1048577", "1-5001", ""),
    *("1-5000,5001", "1-1048576:200", "1-5:99999999999", "1" * 5000, "1-inf"),
    *("[1]", "1-\0", "1\n-2", "nan", "*", "1-*", "2**20"),
)
"""Values that are no lengths."""

PATHS = (
    *("a\0b", "\0", " ", "\t", "\n", "~nobody_here/x", "s3://x", "gs://b/c"),
    *("x" * 300, "é" * 150, "x/" * 3000, "\udcff" * 300),
    *("\udcff", "x\udced\udca0\udc80", "\ud800", "\udfff/x"),
)
"""Values that are no path."""


TOGETHER = (
    {"sampler": "OrdinalPositions", "encoding": ""},
    {"sampler": "OrdinalPositions", "encoding": "RandomizedRoPE"},
    {"sampler": "GridPositions(width=5)"},
    {"encoding": "AxialEncoding(row=RoPE, column=RoPE)"},
    {"encoding": "LearnedEncoding", "sampler": "WarpedPositions"},
    {"encoding": "LearnedEncoding", "max_position": "100"},
    {"encoding": "RandomizedRoPE", "test_lengths": "1048576", "steps": "0"},
    {"encoding": "RandomizedRoPE(max_position=100)"},
    {"encoding": "RoPE", "sampler": "RandomizedPositions(max_position=100)"},
    {"encoding": "RandomizedRoPE", "max_position": "2147483648"},
    {"warmup_steps": "1500"},
    {"steps": "9223372036854775808"},
    {"learning_rate_schedule": "Polynomial(end=0.01)"},
    {"learning_rate_schedule": "Cosine(end=2)", "learning_rate": "1"},
    {"learning_rate_schedule": "Polynomial(power='x')"},
    {"learning_rate_schedule": "Polynomial(end=-5)"},
    {"curriculum": "RegularIncrease(every=1.5)"},
    {"curriculum": "RegularIncrease(shorter='no')"},
    {"curriculum": "ReverseExponential(tau=0)"},
    {"strategy": "tpu", "precision": "mixed_float16"},
    {"strategy": "tpu", "compile": "false"},
    {"encoding": "T5Bias(num_buckets=33)"},
    {"encoding": "RoPE(max_wavelength=1e400)"},
    {"encoding": "RoPE(max_wavelength=2,max_wavelength=9)"},
    {"encoding": "RandomizedRoPE(max_position=2147483648)"},
    {"encoding": "RandomizedRoPE(ordered='no')"},
    {"encoding": "LearnedEncoding(initializer={'class_name': 'x'})"},
    {"encoding": "AxialEncoding(row=RoPE, column=ALiBi)"},
)
"""Flags that are wrong together, or that need another one."""

SANE = (
    *(
        {"train_length": lengths}
        for lengths in ("7", "1-4", "1-500:20", "9,3-5,4", " 1 , 3-5 ", "01")
    ),
    *(
        {"test_lengths": lengths}
        for lengths in ("1-5000", "1048576", "1-1048576:300", "5-5", "1-9:9")
    ),
    *(
        {"encoding": call}
        for call in (
            *("RoPE()", "RoPE ( )", " RoPE ", "RoPE\n", "RoPE(\n)", "RoPE\t()"),
            "RoPE(max_wavelength=1e5,)",
            "RoPE(max_wavelength=0x20)",
            "RoPE(max_wavelength=1_000)",
            "RoPE(max_wavelength=(((20))))",
            'RoPE(layout="halves", rotary_fraction=0.25)',
            "ALiBi(asymmetry=-16777216)",
            "RandomizedRoPE(max_position=16777216)",
            "RandomizedALiBi(ordered=False, distances='positions')",
            "LearnedEncoding(initializer='zeros')",
            "WarpedRoPE(head_scales=[0.5, 1])",
            "NTKRoPE(original_length=None, scaling_factor=4)",
        )
    ),
    {
        "encoding": "AxialEncoding(row=RoPE(layout='halves'), column=RoPE)",
        "sampler": "GridPositions(width=5, row=ShiftedPositions(max_shift=9))",
    },
    {"sampler": "ShiftedPositions(max_shift=None, evaluation='max')"},
    {"encoding": "LearnedEncoding", "sampler": "RandomizedPositions"},
    {"curriculum": "RegularIncrease(every=2147483647, shorter=False)"},
    {"curriculum": "ReverseExponential(tau=0.5)"},
    {"learning_rate_schedule": "Polynomial(power=0.5, end=0.001)"},
    {"learning_rate_schedule": "Cosine(end=1e-4)", "warmup_steps": "1499"},
    *({"seed": seed} for seed in ("0", "2147483647", "0x10", "+3", " 3")),
    *({"steps": steps} for steps in ("1", "2147483647", "1_000")),
    *({"dropout": rate} for rate in ("0", "0.5", "5e-1", ".999")),
    *({"learning_rate": rate} for rate in ("1e-10", "100", "3E-4")),
    *({"clip_norm": norm} for norm in ("1e-6", "1e30")),
    *({"batch_size": size} for size in ("1", "1048576")),
    *({"task": task} for task in ("bucket_sort", " even_pairs ")),
    *(
        {"workdir": path}
        for path in ("", "x", "~/x", "/tmp/x y", "-", "ü/😀", "~", "a~b", "..")
    ),
    {"precision": "mixed_bfloat16", "strategy": "tpu"},
    {"preset": "paper"},
    {"preset": "paper", "encoding": "RandomizedRelativeEncoding"},
    {"compile": "true"},
    {},
)
"""Flags that may look odd, but are right."""
