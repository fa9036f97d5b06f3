//! Hostile chat templates end soon, with an error that names the limit they exceed.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use torchless::Model;
use torchless::chat::{ChatTemplate, Message};

use crate::random_model::RandomModel;

/// What `template` makes of two messages.
fn rendered(template: &str) -> Result<String, String> {
    static MODEL: OnceLock<(PathBuf, Arc<Model>)> = OnceLock::new();
    let (folder, model) = MODEL.get_or_init(|| {
        let folder = RandomModel::new("llama").drawn().write_folder("hostile-templates", true, 1);
        let model = Arc::new(Model::open(&folder).expect("a model"));
        (folder, model)
    });
    static WRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let read = {
        let _alone = WRITING.lock();
        std::fs::write(folder.join("chat_template.jinja"), template).expect("a writable folder");
        ChatTemplate::of(model).expect("a template")
    };
    let message = |role: &str, content: &str| Message { role: role.into(), content: content.into() };
    read.render(&[message("system", "Be brief."), message("user", "hi")], true).map_err(|error| error.to_string())
}

/// Says that `template` is refused, with `reason`.
fn is_refused(template: &str, reason: &str) {
    let shown: String = template.chars().take(100).collect();
    let error = rendered(template).expect_err(&shown);
    assert!(error.contains(reason), "{shown}: {error}");
}

#[test]
fn loops_without_end_are_refused() {
    is_refused("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "5000000 steps");
    let raw = format!("{{% for a in range(99999) %}}{}{{% endfor %}}", "x".repeat(10_000));
    is_refused(&raw, "256 MiB");
    is_refused("{% set s %}{% for a in range(99999) %}{{ 'x' * 9999 }}{% endfor %}{% endset %}", "MiB");
    is_refused("{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}", "recursion");
    assert_eq!(rendered("{{ 'abc'.count('') }}"), Ok("4".into()));
}

#[test]
fn values_that_grow_are_refused() {
    let double = |start: &str, step: &str| {
        format!(
            "{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{{% set ns.s = {step} %}}{{% endfor %}}{{{{ ns.s|length }}}}"
        )
    };
    for (start, step) in [
        ("'aaaaaaaa'", "ns.s ~ ns.s"),
        ("'aaaaaaaa'", "ns.s + ns.s"),
        ("'aaaaaaaa'", "ns.s * 2"),
        ("'aaaaaaaa'", "[ns.s, ns.s]|join"),
        ("'aaaaaaaa'", "ns.s.join([ns.s, ns.s])"),
        ("'aaaaaaaa'", "ns.s|replace('a', 'aa')"),
        ("'aaaaaaaa'", "ns.s.replace('a', 'aa')"),
        ("[1, 2]", "ns.s + ns.s"),
        ("[1, 2]", "ns.s * 2"),
        ("[1, 2]", "[ns.s, ns.s]"),
        ("[1, 2]", "{'a': ns.s, 'b': ns.s}"),
        ("[1, 2]", "ns.s|chain(ns.s)|list"),
        ("[1, 2]", "ns.s|zip(ns.s)|list"),
        ("[1, 2]", "dict(a=ns.s, b=ns.s)"),
    ] {
        is_refused(&double(start, step), "MiB");
    }
}

#[test]
fn one_operation_cannot_make_or_read_much() {
    for template in [
        "{% set n = 99999 %}{{ ('a' * n).replace('a', 'b' * n) }}",
        "{% set n = 99999 %}{{ ('a' * n)|replace('a', 'b' * n) }}",
        "{% set n = 99999 %}{{ range(n)|join('x' * n) }}",
        "{% set n = 99999 %}{{ ('x' * n).join(range(n)) }}",
        "{% set n = 99999 %}{{ 'x' * n * n }}",
        "{% set n = 99999 %}{{ ([1] * n * n)|length }}",
        "{% set n = 99999999 %}{{ 'a\\nb'|indent(n * n) }}",
        "{% set n = 99999999 %}{{ 'a\\nb'|indent(width=n * n) }}",
        "{% set n = 99999999 %}{{ [1]|batch(n * n)|list }}",
        "{% set n = 99999999 %}{{ [1]|slice(n * n)|list }}",
        "{{ '%999999999999d'|format(1) }}",
        "{{ '{:999999999999}'.format(1) }}",
        "{% set n = 999999999999 %}{{ '%*d'|format(n, 1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000s' % 'a' }}",
        "{{ '%.1000000000d' % 1 }}",
        "{{ '%.1000000000f' % 1.5 }}",
        "{{ '%.1000000000e|%.99999999999999999999g' % (1.5, 1.5) }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '%.*f' % (1000000000, 1) }}",
        "{% set f = '%9999999d' %}{{ (f * 9) % (1, 2, 3, 4, 5, 6, 7, 8, 9) }}",
        "{% set n = 999999 %}{% for i in range(999) %}{{ '%999999d' % i }}{% endfor %}",
        "{% set n = 999999 %}{% set l = ['\\x01' * n] %}{% for i in range(99) %}{{ l }}{% endfor %}",
        "{% set n = 9999999 %}{% set s = 'a' * n %}{% for i in range(99) %}{% if '%s' % s %}{% endif %}{% endfor %}",
        "{% set n = 9999999 %}{% set s = 'a' * n %}{% for i in range(99) %}{% if '%.1s' % s %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{{ '%#.16000000g' % 1.5 }}{% endfor %}",
        "{% set n = 99999 %}{% set f = '%(a).0r' * n %}{{ f % {'a': 'x' * n} }}",
        "{% set n = 99999 %}{{ (['a' * n] * n)|sum }}",
        "{% set n = 99999 %}{{ range(n)|map('replace', '1', 'x' * n)|list }}",
        "{% set n = 99999 %}{{ (('ab' * n * 20)|list)|length }}",
        "{% set n = 9999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if s == s ~ 'b' %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if 'b' in s %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if s[999998:] %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if s|trim %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if s is eq(s) %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if 1 < 2 < s %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if {}[s] %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% if loop.changed(s) %}{% endif %}{% endfor %}",
        "{% set n = 999999 %}{% set s = 'a' * n %}{% for i in range(99999) %}{% for c in s %}{% break %}{% endfor %}{% endfor %}",
    ] {
        is_refused(template, "MiB");
    }
}

#[test]
fn values_cannot_be_nested_deeply_or_hold_themselves() {
    let nest = |step: &str| {
        format!(
            "{{% set ns = namespace(s=[1]) %}}{{% for i in range(99999) %}}{{% set ns.s = {step} %}}{{% endfor %}}{{{{ ns.s }}}}"
        )
    };
    for step in
        ["[ns.s]", "{'a': ns.s}", "ns.s|batch(1)|list", "[1]|zip([ns.s])|list", "dict(a=ns.s)", "{'a': ns.s}.items()"]
    {
        is_refused(&nest(step), "nested more than 64 deep");
    }
    let hold = "namespaces cannot hold";
    is_refused("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", hold);
    is_refused("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}", hold);
    is_refused("{% set ns = namespace() %}{% set ns.a = {'b': ns} %}{{ ns }}", hold);
    is_refused("{% set ns = namespace() %}{% set n2 = namespace(a=ns) %}{{ n2 }}", hold);
    is_refused("{% for i in [1] %}{% set x = [loop] %}{{ x }}{% endfor %}", hold);
}

#[test]
fn templates_too_complex_to_compile_are_refused() {
    is_refused(&"x".repeat(1 << 20), "128 KiB");
    is_refused(&format!("{{{{ x{} }}}}", " ~ x".repeat(20_000)), "2000 words");
    is_refused(&format!("{{{{ x{} }}}}", ".a".repeat(20_000)), "2000 words");
    is_refused(&format!("{{{{ {}x }}}}", "not ".repeat(20_000)), "2000 words");
    let branches = format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(5_000));
    is_refused(&branches, "branches");
    is_refused(&"{{ 'a' * 100000000 }}".repeat(100), "constant text");
    is_refused(&"{{ ('a' * 10000) * 10000 }}".repeat(100), "constant text");
    is_refused(&"{{ 'a' * 10 ** 8 }}".repeat(100), "constant text");
    // As deep as is allowed.
    assert_eq!(rendered(&format!("{{{{ x{} }}}}", " ~ x".repeat(998))), Ok(String::new()));
    let branches = format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(200));
    assert_eq!(rendered(&branches), Ok(String::new()));
}

#[test]
fn messages_of_templates_are_escaped() {
    let error = rendered("{{ raise_exception('\x1b[31mred\u{202e}\u{200b}') }}").expect_err("it raises");
    assert!(error.contains("\\u{1b}[31mred\\u{202e}\\u{200b}"), "{error:?}");
    let error = rendered(&format!("{{{{ raise_exception('{}') }}}}", "x".repeat(100_000))).expect_err("it raises");
    assert!(error.len() < 1000, "{error}");
}

/// The constructs of published templates, with what they make.
#[test]
fn templates_of_models_work_as_before() {
    let cases = [
        (
            "{%- set ns = namespace(last=-1, seen=[]) -%}{%- for m in messages[::-1] -%}{%- set i = (messages|length - 1) - loop.index0 -%}\
             {%- if m.role == 'user' and ns.last == -1 -%}{%- set ns.last = i -%}{%- endif -%}{%- set ns.seen = ns.seen + [m.role] -%}\
             {%- endfor -%}{{ ns.last }} {{ ns.seen }}",
            "1 ['user', 'system']",
        ),
        (
            "{%- macro turn(m, open='<|', close='|>') -%}{{ open ~ m['role'] ~ close }}{{ m['content']|trim }}{%- endmacro -%}\
             {%- for m in messages -%}{{ turn(m) }}{{ turn(m, close='>') if loop.last }}{%- endfor -%}",
            "<|system|>Be brief.<|user|>hi<|user>hi",
        ),
        (
            "{%- if messages[0]['role'] == 'system' -%}{%- set rest = messages[1:] -%}{%- else -%}{%- set rest = messages -%}{%- endif -%}\
             {%- for m in rest -%}{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('order') }}{%- endif -%}\
             [INST] {{ m.content.strip() + ' [/INST]' }}{%- endfor -%}{{ eos_token }}",
            "[INST] hi [/INST]",
        ),
        (
            "{%- set text = '<think>a</think>\\n\\nb' -%}{{ text.split('</think>')[-1].lstrip('\\n') }} {{ '</think>' in text }} \
             {{ text.startswith('<') and not text.endswith('>') }} {{ 0 < messages|length < 3 }}",
            "b True True True",
        ),
        (
            "{%- set tool = {'name': 'f', 'parameters': {'properties': {'x': {'type': ['number', 'null']}}}} -%}\
             {%- for name, p in tool.parameters.properties.items() -%}{{ name }}: {{ p.type|join(' | ') }}; {%- endfor -%}\
             {{ tool|tojson }} {{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list|first }}\
             {{ ['a', 'b']|map('upper')|join('-') }} {{ '-' * 4 }} {{ [1, 2]|sum }} {{ {'b': 1, 'a': 2}|dictsort }}",
            "x: number | null;{\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": {\"type\": [\"number\", \"null\"]}}}} hi\
             A-B ---- 3 [('a', 2), ('b', 1)]",
        ),
        (
            "{%- set x -%}{% for m in messages %}{{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}{%- endset -%}{{ x|upper }}\
             {%- for m in messages recursive -%}{%- if m is mapping -%}{{ loop([1]) }}{%- else -%}{{ m }}{%- endif -%}{%- endfor -%}\
             {%- filter upper -%}q{%- endfilter -%}{%- with a = 1 -%}{{ a }}{%- endwith -%}",
            "SYSTEM, USER11Q1",
        ),
        (
            "{%- macro box() -%}[{{ caller('z') }}]{%- endmacro -%}{%- call(v) box() -%}{{ v }}{%- endcall -%}\
             {%- set d = dict(a=1, **{'b': 2}) -%}{{ d.a + d['b'] }}{{ d.get('c', 7) }}{{ d.keys()|list }}{{ cycled is defined }}\
             {%- for i in range(3) -%}{%- if i == 1 -%}{%- continue -%}{%- endif -%}{{ i }}{{ loop.cycle('o', 'e') }}{%- endfor -%}",
            "[z]37['a', 'b']False0o2o",
        ),
    ];
    for (template, expected) in cases {
        assert_eq!(rendered(template).as_deref(), Ok(expected), "{template}");
    }
}
