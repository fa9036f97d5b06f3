//! Chat templates with blocks that mark what the model says.

use torchless::chat::{ChatTemplate, Message};
use torchless::{Error, Model};

use crate::random_model::RandomModel;

/// Templates, and what `render_jinja_template` of transformers 5.23.0 (jinja2 3.1.6) makes of the
/// messages below.
const RENDERED: [(&str, &str); 13] = [
    (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}|{% endgeneration %}{% else %}{{ m.role }}:{{ m.content }}\n{% endif %}{% endfor %}",
        "system:S\nuser:Hi\nA{}|",
    ),
    (
        "{%- for m in messages -%}\n  {%- if m['role'] == 'assistant' -%}\n    {%- generation -%}\n    a {{ m['content'] }} b\n    {%- endgeneration -%}\n  {%- else -%} <{{ m['content'] }}> {%- endif -%}\n{%- endfor -%}",
        "<S><Hi>a A{} b",
    ),
    (
        "a\n  {% generation %}\n  b\n  {% endgeneration %}\n c\n {%+ generation +%} d {%+ endgeneration %}\ne",
        "a\n  b\n c\n  d e",
    ),
    ("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "21"),
    ("{% set n = namespace(x=1) %}{% generation %}{% set n.x = 2 %}{{ n.x }}{% endgeneration %}{{ n.x }}", "22"),
    (
        "{% for m in messages %}{% generation %}{{ loop.index }}{{ m.content }}{% endgeneration %}{% endfor %}",
        "1S2Hi3A{}",
    ),
    (
        "{# {% generation %} #}{% raw %}{% generation %}{{ x }}{% endgeneration %}{% endraw %}{{ '{% generation %}' }}{% generation %}!{% endgeneration %}",
        "{% generation %}{{ x }}{% endgeneration %}{% generation %}!",
    ),
    (
        "{% generation %}{% generation %}x{% endgeneration %}{% if true %}y{% endif %}{% endgeneration %}{% if generation is defined %}z{% endif %}",
        "xy",
    ),
    (
        "{%generation%}{% for m in messages %}{% if loop.last %}{{ m.content }}{% endif %}{% endfor %}{%endgeneration%}",
        "A{}",
    ),
    ("{%-\n generation\n-%} x {%- endgeneration\n %} y", "x y"),
    (
        "{% macro f(a) %}{% generation %}<{{ a }}>{% endgeneration %}{% endmacro %}{{ f('q') }}{{ {'a': {'b': 1}}['a']['b'] }}",
        "<q>1",
    ),
    ("{#} {{ #}{% generation %}a{% endgeneration %}", "a"),
    ("{#} {% raw %} #}{% generation %}a{% endgeneration %}", "a"),
];

/// Templates that it refuses.
const REFUSED: [&str; 4] =
    ["{% generation %}a", "{% endgeneration %}", "{% generation %}a{% endwith %}", "{% with %}a{% endgeneration %}"];

const MESSAGES: [(&str, &str); 3] = [("system", "S"), ("user", "Hi"), ("assistant", "A{}")];

#[test]
fn generation_blocks_are_rendered_as_in_transformers() {
    let folder = RandomModel::new("llama").drawn().write_folder("generation", true, 1);
    let messages = MESSAGES.map(|(role, content)| Message { role: role.into(), content: content.into() });
    let rendered = |template: &str| -> Result<String, Error> {
        std::fs::write(folder.join("chat_template.jinja"), template).expect("a writable folder");
        ChatTemplate::of(&Model::open(&folder).expect("a model"))?.render(&messages, false)
    };
    for (template, expected) in RENDERED {
        assert_eq!(rendered(template).expect(template), expected, "{template}");
    }
    for template in REFUSED {
        rendered(template).expect_err(template);
    }
}
