"""Odd texts of a command line: those to refuse, and those that look odd."""

TEXTS = (
    *("", " ", "x", "1.5", "nan", "inf", "-1", "0", "1e400", "1e-46", "1e35"),
    *("99999999999999999999", "9" * 5000, "None", "1,2", "1\0", "\udcff", "1e"),
)
"""Values that are wrong for almost every flag."""

SYNTAX = (
    *("(", "()", "NAME(", "NAME)", "NAME()()", "NAME NAME", "NAME.x", "NAME=1"),
    *("-" * 5000 + "1", "(" * 5000, "NAME(" + "(" * 300, "\0", "NAME()#"),
    *("NAME(x=" + "-" * 900 + "1)", "NAME(x=1, x=1)", "NAME(**{'x': 1}, x=1)"),
    *("NAME(*[])", "NAME(3)", "NAME(x=open('x'))", "NAME(self=1)", "lambda: 0"),
    *("NAME(__class__=1)", "NAME(name='x')", "NAME(dtype='float16')", "NAME?"),
    *("NAME(x='\\d')", "NAME(x='\0')", "NAME(x=0777)", "NAME\udcff", "-NAME"),
)
"""Values that are no call that a flag takes; `NAME` is a name that it takes."""

LENGTHS = (
    *("0", "0-5", "5-1", "1-", "-", ":", "1-5:0", "1-5:-1", "1-5-9", "1,,2"),
    *("1,", "1 - 5", "1.5", "1e3", "+5", "1_0", "\uff11", "²", "1-1000000"),
    *("99999999999", "1048577", "1-5001", "1-5000,5001", "1" * 5000, "[1]", ""),
)
"""Values that are no lengths."""

PATHS = (
    *("a\0b", " ", "\n", "~nobody_here/x", "s3://x", "gs://b/c", "x" * 300),
    *("é" * 150, "x/" * 3000, "\udcff", "\ud800"),
)
"""Values that are no path."""

MARKUP = (
    *("a|b", "||", "a\\|b", "a`b", "``a`", "<b>x</b>", "<!-- x -->", "&lt;x"),
    *("[x](y)", "![x](y)", "*x* **x**", "_x_ a_b __x__", "~~x~~", "a\nb"),
    *("$x$", "$x_{$", "a\\", "=1+1", "@SUM(1)", "\\[x\\]", "# x #x", "- x"),
)
"""Texts, such as names of directories, that mean more to Markdown or HTML."""

TOGETHER = (
    {"sampler": "OrdinalPositions", "encoding": ""},
    {"sampler": "OrdinalPositions", "encoding": "RandomizedRoPE"},
    {"encoding": "LearnedEncoding", "max_position": "100"},
    {"encoding": "RandomizedRoPE(max_position=100)"},
    {"encoding": "RoPE", "sampler": "RandomizedPositions(max_position=100)"},
    {"warmup_steps": "1500"},
    {"learning_rate_schedule": "Cosine(end=2)", "learning_rate": "1"},
    {"curriculum": "ReverseExponential(tau=0)"},
    {"strategy": "tpu", "precision": "mixed_float16"},
    {"encoding": "RoPE(max_wavelength=1e400)"},
    {"encoding": "RandomizedRoPE(ordered='no')"},
)
"""Flags that are wrong together, or that need another one."""

SANE = (
    *({"train_length": lengths} for lengths in ("9,3-5,4", " 1 , 3-5 ", "01")),
    *({"test_lengths": lengths} for lengths in ("1-5000", "1-1048576:300")),
    *({"encoding": call} for call in ("RoPE ( )", "RoPE(\n)", "NoPE")),
    {"encoding": "RoPE(max_wavelength=0x20, layout='halves',)"},
    {"encoding": "LearnedEncoding", "sampler": "RandomizedPositions"},
    {"learning_rate_schedule": "Cosine(end=1e-4)", "warmup_steps": "1499"},
    *({"seed": seed} for seed in ("2147483647", "0x10", "+3", " 3")),
    *({"dropout": rate} for rate in ("0", "5e-1", ".999")),
    *({"workdir": path} for path in ("", "~/x", "/tmp/x y", "ü/😀", "a~b")),
    {"preset": "paper", "encoding": "RandomizedRelativeEncoding"},
)
"""Flags that may look odd, but are right."""
