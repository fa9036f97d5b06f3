//! Parses the text of a formula by precedence climbing; the operations come out in an order in
//! which they can be computed.

use super::error::{FormulaError, FormulaProblem, column};
use super::function::{BinaryFunction, Named, UnaryFunction, by_name};
use super::lexer::{Lexer, Token};
use super::{Formula, MOST_NODES, NameUse, Node};
use std::collections::HashMap;
use std::ops::Range;

/// The largest number of levels, so that hostile texts do not exhaust the stack.
const MOST_LEVELS: usize = 200;

/// How strongly a sign binds: more than `*`, less than `^`.
const SIGN: u8 = 15;

/// Operators with their strength to the left and to the right, as in C; `^` comes from right to
/// left.
const OPERATORS: [(&str, u8, u8); 14] = [
    ("||", 3, 4),
    ("&&", 5, 6),
    ("==", 7, 8),
    ("!=", 7, 8),
    ("<", 9, 10),
    ("<=", 9, 10),
    (">", 9, 10),
    (">=", 9, 10),
    ("+", 11, 12),
    ("-", 11, 12),
    ("*", 13, 14),
    ("/", 13, 14),
    ("^", 17, 16),
    ("**", 17, 16),
];

/// How strongly `?` binds to the left.
const CHOICE: u8 = 1;

type Parsed<T> = Result<T, FormulaError>;

pub(super) fn parse(text: &str, arguments: &[String]) -> Parsed<Formula> {
    let mut parser = Parser {
        text,
        arguments,
        lexer: Lexer::new(text),
        token: Token::End,
        span: 0..0,
        level: 0,
        names: Names::default(),
        nodes: Vec::new(),
        integers: Vec::new(),
    };
    parser.advance()?;
    parser.expression(0)?;
    match parser.token {
        Token::End => Ok(Formula {
            text: text.to_owned(),
            names: parser.names.names,
            uses: parser.names.uses,
            nodes: parser.nodes,
        }),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// The names of a formula.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    index: HashMap<String, usize>,
    uses: Vec<NameUse>,
}

impl Names {
    fn add(&mut self, name: &str, span: Range<usize>, is_position: bool) -> usize {
        let next = self.names.len();
        let index = *self.index.entry(name.to_owned()).or_insert(next);
        if index == next {
            self.names.push(name.to_owned());
        }
        self.uses.push(NameUse { name: index, span, is_position });
        index
    }
}

struct Parser<'a> {
    text: &'a str,
    arguments: &'a [String],
    lexer: Lexer<'a>,
    /// The next token, and its bytes.
    token: Token,
    span: Range<usize>,
    level: usize,
    names: Names,
    nodes: Vec<Node>,
    /// For each node, whether it is a constant that is an integer in C.
    integers: Vec<bool>,
}

impl Parser<'_> {
    fn advance(&mut self) -> Parsed<Range<usize>> {
        let read = self.span.clone();
        let next = self.lexer.next();
        (self.token, self.span) = next.map_err(|(problem, at)| self.error(problem, at))?;
        Ok(read)
    }

    fn error(&self, problem: FormulaProblem, at: usize) -> FormulaError {
        FormulaError { problem, column: column(self.text, at), text: self.text.to_owned() }
    }

    fn unexpected(&self, expected: &'static str) -> FormulaError {
        let found = self.token.found();
        self.error(FormulaProblem::Unexpected { expected, found }, self.span.start)
    }

    fn expect(&mut self, symbol: &'static str, expected: &'static str) -> Parsed<()> {
        if self.token != Token::Symbol(symbol) {
            return Err(self.unexpected(expected));
        }
        self.advance().map(|_| ())
    }

    /// Reads an expression whose operators bind at least as strongly as `least`, and returns its
    /// node.
    fn expression(&mut self, least: u8) -> Parsed<u32> {
        self.level += 1;
        if self.level > MOST_LEVELS {
            return Err(self.error(FormulaProblem::TooDeep(MOST_LEVELS), self.span.start));
        }
        let mut left = self.operand()?;
        while let Token::Symbol(symbol) = self.token {
            if symbol == "?" && CHOICE >= least {
                left = self.choice(left)?;
                continue;
            }
            let Some(&(_, to_left, to_right)) = OPERATORS.iter().find(|(known, ..)| *known == symbol) else { break };
            if to_left < least {
                break;
            }
            let at = self.advance()?.start;
            let right = self.expression(to_right)?;
            left = self.operator(symbol, left, right, at)?;
        }
        self.level -= 1;
        Ok(left)
    }

    fn operator(&mut self, symbol: &str, left: u32, right: u32, at: usize) -> Parsed<u32> {
        let (function, a, b) = match symbol {
            "+" => (BinaryFunction::Add, left, right),
            "-" => (BinaryFunction::Subtract, left, right),
            "*" => (BinaryFunction::Multiply, left, right),
            "/" => (BinaryFunction::Divide, left, right),
            "<" => (BinaryFunction::Less, left, right),
            "<=" => (BinaryFunction::LessOrEqual, left, right),
            ">" => (BinaryFunction::Less, right, left),
            ">=" => (BinaryFunction::LessOrEqual, right, left),
            "==" => (BinaryFunction::Equal, left, right),
            "!=" => (BinaryFunction::NotEqual, left, right),
            "&&" => (BinaryFunction::And, left, right),
            "||" => (BinaryFunction::Or, left, right),
            "^" | "**" => (BinaryFunction::Power, left, right),
            _ => return Err(self.error(FormulaProblem::UnknownFunction(symbol.to_owned()), at)),
        };
        self.binary(function, [a, b], at)
    }

    fn choice(&mut self, condition: u32) -> Parsed<u32> {
        self.advance()?;
        let yes = self.expression(0)?;
        self.expect(":", "`:`")?;
        let no = self.expression(CHOICE)?;
        self.push(Node::Select(condition, yes, no), false)
    }

    fn operand(&mut self) -> Parsed<u32> {
        let span = self.span.clone();
        match self.token.clone() {
            Token::Number(value, is_integer) => {
                self.advance()?;
                self.push(Node::Number(value), is_integer)
            }
            Token::Position(position) => {
                self.advance()?;
                self.argument(position, span)
            }
            Token::Name(name) => {
                self.advance()?;
                self.named(&name, span)
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inside = self.expression(0)?;
                self.expect(")", "`)`")?;
                Ok(inside)
            }
            Token::Symbol("+") => {
                self.advance()?;
                self.expression(SIGN)
            }
            Token::Symbol(symbol @ ("-" | "!")) => {
                self.advance()?;
                let operand = self.expression(SIGN)?;
                self.unary(if symbol == "-" { UnaryFunction::Negate } else { UnaryFunction::Not }, operand)
            }
            _ => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    fn argument(&mut self, position: usize, span: Range<usize>) -> Parsed<u32> {
        let Some(name) = self.arguments.get(position) else {
            let count = self.arguments.len();
            return Err(self.error(FormulaProblem::NoArgument { position, count }, span.start));
        };
        let name = self.names.add(name, span, true);
        self.push(Node::Name(name as u32), false)
    }

    /// Reads what follows a name: operands, if it is a function.
    fn named(&mut self, name: &str, span: Range<usize>) -> Parsed<u32> {
        let is_quoted = self.text[span.clone()].starts_with('`');
        if self.token == Token::Symbol("(") && !is_quoted {
            return self.call(name, span.start);
        }
        let position = name.strip_prefix("x[").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        match position.filter(|_| !is_quoted && !self.arguments.is_empty()) {
            Some(position) => self.argument(position, span),
            None => {
                let name = self.names.add(name, span, false);
                self.push(Node::Name(name as u32), false)
            }
        }
    }

    fn call(&mut self, name: &str, at: usize) -> Parsed<u32> {
        let Some(function) = by_name(name) else {
            return Err(self.error(FormulaProblem::UnknownFunction(name.to_owned()), at));
        };
        let operands = self.operands()?;
        let wrong = |expected: &str| {
            let (name, expected, found) = (name.to_owned(), expected.to_owned(), operands.len());
            Err(self.error(FormulaProblem::Operands { name, expected, found }, at))
        };
        match (function, operands.as_slice()) {
            (Named::Constant(value), []) => self.push(Node::Number(value), false),
            (Named::Constant(_), _) => wrong("no"),
            (Named::Unary(function), &[operand]) => self.unary(function, operand),
            (Named::Unary(_), _) => wrong("1"),
            (Named::Binary(function), &[a, b]) => self.binary(function, [a, b], at),
            (Named::Binary(function @ (BinaryFunction::Min | BinaryFunction::Max)), [first, rest @ ..])
                if !rest.is_empty() =>
            {
                rest.iter().try_fold(*first, |a, &b| self.binary(function, [a, b], at))
            }
            (Named::Binary(BinaryFunction::Min | BinaryFunction::Max), _) => wrong("2 or more"),
            (Named::Binary(_), _) => wrong("2"),
        }
    }

    fn operands(&mut self) -> Parsed<Vec<u32>> {
        self.advance()?;
        let mut operands = Vec::new();
        if self.token != Token::Symbol(")") {
            operands.push(self.expression(0)?);
            while self.token == Token::Symbol(",") {
                self.advance()?;
                operands.push(self.expression(0)?);
            }
        }
        self.expect(")", "`,` or `)`")?;
        Ok(operands)
    }

    fn unary(&mut self, function: UnaryFunction, operand: u32) -> Parsed<u32> {
        match self.nodes[operand as usize] {
            Node::Number(x) => {
                let is_integer = function == UnaryFunction::Negate && self.integers[operand as usize];
                self.push(Node::Number(function.value(x)), is_integer)
            }
            _ => self.push(Node::Unary(function, operand), false),
        }
    }

    fn binary(&mut self, function: BinaryFunction, [a, b]: [u32; 2], at: usize) -> Parsed<u32> {
        match (function, self.nodes[a as usize], self.nodes[b as usize]) {
            (_, Node::Number(x), Node::Number(y)) => {
                let value = function.value(x, y);
                let are_integers = self.integers[a as usize] && self.integers[b as usize];
                if function == BinaryFunction::Divide && are_integers && value.fract() != 0.0 {
                    return Err(self.error(FormulaProblem::IntegerQuotient(format!("`{x}/{y}`")), at));
                }
                self.push(Node::Number(value), are_integers && function != BinaryFunction::Power)
            }
            (BinaryFunction::Power, _, Node::Number(exponent)) => {
                self.push(Node::Unary(UnaryFunction::Power(exponent), a), false)
            }
            _ => self.push(Node::Binary(function, a, b), false),
        }
    }

    fn push(&mut self, node: Node, is_integer: bool) -> Parsed<u32> {
        if self.nodes.len() == MOST_NODES {
            return Err(self.error(FormulaProblem::TooLong(MOST_NODES), self.span.start));
        }
        self.nodes.push(node);
        self.integers.push(is_integer);
        Ok(self.nodes.len() as u32 - 1)
    }
}
