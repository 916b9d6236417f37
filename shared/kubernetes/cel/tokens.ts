/** Tokens of an expression. Source: the grammar of cel-spec, doc/langdef.md#syntax. */

import { CelUint, type CelValue } from './values.ts';

export type Token =
  | { readonly kind: 'name' | 'symbol' | 'end'; readonly text: string; readonly at: number }
  | { readonly kind: 'literal'; readonly text: string; readonly at: number; readonly value: CelValue }
  /** A number that is not in range yet: a minus before it belongs to it. */
  | { readonly kind: 'number'; readonly text: string; readonly at: number };

export class SyntaxFault extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

const SPACE = /(?:[\t\n\f\r ]|\/\/[^\n]*)+/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /(?:0x[0-9a-fA-F]+[uU]?|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)/y;
const STRING_START = /(?:[rR][bB]?|[bB][rR]?)?(?:"""|'''|"|')/y;
const SYMBOL = /(?:==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}])/y;

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** @throws SyntaxFault */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    at += matchAt(SPACE, source, at)?.length ?? 0;
    if (at >= source.length) break;
    const token = tokenAt(source, at);
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', text: '', at });
  return tokens;
}

function tokenAt(source: string, at: number): Token {
  const start = matchAt(STRING_START, source, at);
  if (start !== undefined) return stringAt(source, at, start);
  const number = matchAt(NUMBER, source, at);
  if (number !== undefined) return { kind: 'number', text: number, at };
  const name = matchAt(NAME, source, at);
  if (name !== undefined) return { kind: 'name', text: name, at };
  const symbol = matchAt(SYMBOL, source, at);
  if (symbol !== undefined) return { kind: 'symbol', text: symbol, at };
  throw new SyntaxFault(at, `Syntax error: token recognition error at: '${source[at]}'`);
}

/** The value of a number. @throws SyntaxFault */
export function numberValue(text: string, isNegative: boolean, at: number): CelValue {
  const signed = (isNegative ? '-' : '') + text;
  const isUint = /[uU]$/.test(text);
  const isHex = text.startsWith('0x');
  if (!isUint && !isHex && /[.eE]/.test(text)) {
    const value = Number(signed);
    if (Number.isFinite(value)) return value;
    throw new SyntaxFault(at, 'invalid double literal');
  }
  const magnitude = BigInt(isUint ? text.slice(0, -1) : text);
  if (isUint) {
    if (isNegative || magnitude >= 2n ** 64n) throw new SyntaxFault(at, 'invalid uint literal');
    return new CelUint(magnitude);
  }
  const value = isNegative ? -magnitude : magnitude;
  if (value !== BigInt.asIntN(64, value)) throw new SyntaxFault(at, 'invalid int literal');
  return value;
}

function stringAt(source: string, at: number, start: string): Token {
  const quote = start.replace(/^[a-zA-Z]+/, '');
  const prefix = start.slice(0, start.length - quote.length).toLowerCase();
  const isRaw = prefix.includes('r');
  let end = at + start.length;
  for (;;) {
    if (end >= source.length) throw new SyntaxFault(at, 'Syntax error: unterminated string literal');
    if (source.startsWith(quote, end)) break;
    if (quote.length === 1 && /[\r\n]/.test(source[end] as string)) {
      throw new SyntaxFault(at, 'Syntax error: unterminated string literal');
    }
    end += !isRaw && source[end] === '\\' ? 2 : 1;
  }
  const text = source.slice(at, end + quote.length);
  const body = source.slice(at + start.length, end).replace(/\r\n?/g, '\n');
  const isBytes = prefix.includes('b');
  const value = isBytes ? bytesOf(body, isRaw, at) : isRaw ? body : unescaped(body, at);
  return { kind: 'literal', text, at, value };
}

const ESCAPE = /\\(?:[abfnrtv\\?"'`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})/y;
const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** The code point of an escape, or the text of a simple one. */
function escapeOf(text: string, at: number): string | number {
  const kind = text[1] as string;
  if (/[xXuU]/.test(kind)) return Number.parseInt(text.slice(2), 16);
  if (/[0-3]/.test(kind)) return Number.parseInt(text.slice(1), 8);
  if (text.length !== 2) throw new SyntaxFault(at, 'Syntax error: invalid escape');
  return SIMPLE[kind] ?? kind;
}

function unescaped(body: string, at: number): string {
  return mapEscapes(body, at, (found) => {
    if (typeof found === 'string') return found;
    if (found > 0x10ffff || (found >= 0xd800 && found <= 0xdfff)) {
      throw new SyntaxFault(at, 'Syntax error: invalid unicode code point');
    }
    return String.fromCodePoint(found);
  }).join('');
}

function bytesOf(body: string, isRaw: boolean, at: number): Uint8Array {
  if (isRaw) return Buffer.from(body);
  const parts = mapEscapes(body, at, (found, text) => {
    if (typeof found === 'string') return found;
    if (/^\\[uU]/.test(text)) throw new SyntaxFault(at, 'Syntax error: unicode escape in a bytes literal');
    return Buffer.of(found);
  });
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

function mapEscapes<T>(body: string, at: number, map: (found: string | number, text: string) => T): (T | string)[] {
  const parts: (T | string)[] = [];
  let from = 0;
  for (let slash = body.indexOf('\\'); slash !== -1; slash = body.indexOf('\\', from)) {
    if (slash > from) parts.push(body.slice(from, slash));
    const text = matchAt(ESCAPE, body, slash);
    if (text === undefined) throw new SyntaxFault(at, 'Syntax error: invalid escape');
    parts.push(map(escapeOf(text, at), text));
    from = slash + text.length;
  }
  if (from < body.length) parts.push(body.slice(from));
  return parts;
}
