/**
 * Values of expressions of HCL, as JavaScript computes them: what a module makes of its inputs, without Terraform. It
 * knows the functions that the module of a release uses, and no resources: a value that follows from one is an
 * argument. Numbers are those of JavaScript, and `==` compares as it does.
 */
import { readFileSync } from 'node:fs';
import { createContext, runInContext } from 'node:vm';

export interface ModuleBlocks {
  readonly variable: Readonly<Record<string, readonly [VariableBlock]>>;
  readonly locals: readonly Readonly<Record<string, unknown>>[];
}
interface VariableBlock {
  readonly default?: unknown;
  readonly validation?: readonly { readonly condition: string; readonly error_message: string }[];
}

export class HclValues {
  readonly #blocks: ModuleBlocks;
  readonly #scope: ReturnType<typeof createContext>;

  /** @param known values of locals that follow from resources */
  constructor(
    folder: string,
    blocks: ModuleBlocks,
    inputs: Readonly<Record<string, unknown>>,
    known: Readonly<Record<string, unknown>> = {},
  ) {
    this.#blocks = blocks;
    const locals = Object.assign({}, ...blocks.locals) as Record<string, unknown>;
    const byName = (read: (name: string) => unknown) => new Proxy({}, { get: (_, name) => read(String(name)) });
    const values = new Map(Object.entries(known));
    const local = (name: string): unknown => {
      if (!values.has(name)) {
        if (!Object.hasOwn(locals, name)) throw new Error(`no local.${name}`);
        values.set(name, this.value(locals[name]));
      }
      return values.get(name);
    };
    const variable = (name: string): unknown => {
      const block = blocks.variable[name]?.[0];
      if (block === undefined) throw new Error(`no var.${name}`);
      return Object.hasOwn(inputs, name) ? inputs[name] : this.value(block.default);
    };
    this.#scope = createContext({
      ...FUNCTIONS,
      path: { module: folder },
      var$: byName(variable),
      local: byName(local),
    });
  }

  local(name: string): unknown {
    return this.value(`\${local.${name}}`);
  }

  /** Messages of the validations that fail. */
  faultsOf(variable: string): string[] {
    const validations = this.#blocks.variable[variable]?.[0].validation ?? [];
    return validations
      .filter(({ condition }) => this.value(condition) !== true)
      .map(({ error_message: message }) => String(this.value(message)));
  }

  /** @param syntax as the parser returns it: text with an expression in `${}`, or a structure of such texts */
  value(syntax: unknown): unknown {
    if (Array.isArray(syntax)) return syntax.map((each) => this.value(each));
    if (typeof syntax === 'object' && syntax !== null) {
      return Object.fromEntries(Object.entries(syntax).map(([name, each]) => [name, this.value(each)]));
    }
    if (typeof syntax !== 'string' || !syntax.includes('${')) return syntax;
    const isOne = syntax.startsWith('${') && new Translation(syntax.slice(2)).endsWith('}');
    const script = new Translation(isOne ? syntax.slice(2, -1) : `"${syntax}"`).expression('');
    return runInContext(script, this.#scope);
  }
}

/** HCL to JavaScript, from left to right. */
class Translation {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Whether the first expression ends with this character, which is the last one. */
  endsWith(character: string): boolean {
    this.expression(character);
    return this.#at === this.#text.length - 1;
  }

  /** Up to one of these characters, to `=>` or to the word `if`. */
  expression(until: string): string {
    let script = '';
    while (this.#at < this.#text.length) {
      const rest = this.#text.slice(this.#at);
      const [word] = /^[A-Za-z_][\w-]*/.exec(rest) ?? [];
      const character = rest[0]!;
      if (word === 'if' || until.includes(character) || rest.startsWith('=>')) break;
      this.#at += word?.length ?? 1;
      if (word !== undefined)
        script += this.#text[this.#at] === '(' ? this.#call(word) : word === 'var' ? 'var$' : word;
      else if (character === '"') script += this.#string();
      else if (character === '(') script += `(${this.#upTo(')')})`;
      else if (character === '[' || character === '{') script += this.#collection(character);
      else script += character;
    }
    return script;
  }

  #upTo(end: string): string {
    const script = this.expression(end);
    this.#at += end.length;
    return script;
  }

  #string(): string {
    let script = '`';
    for (let character = this.#text[this.#at]!; character !== '"'; character = this.#text[this.#at]!) {
      this.#at += 1;
      if (character === '\\') {
        script += `\\${this.#text[this.#at]}`;
        this.#at += 1;
      } else if (character === '$' && this.#text[this.#at] === '{') {
        this.#at += 1;
        script += `\${${this.#upTo('}')}}`;
      } else script += character;
    }
    this.#at += 1;
    return `${script}\``;
  }

  /** Arguments of `try` and `can` are evaluated when they are needed. */
  #call(name: string): string {
    const args: string[] = [];
    while (this.#text[this.#at] !== ')') {
      this.#at += 1;
      args.push(this.expression(',)'));
    }
    this.#at += 1;
    const used = args.filter((arg) => arg.trim() !== '');
    return `${name}$(${used.map((arg) => (name === 'try' || name === 'can' ? `() => (${arg})` : arg)).join(',')})`;
  }

  #collection(open: '[' | '{'): string {
    const close = open === '[' ? ']' : '}';
    const comprehension = /^\s*for\s+(\w+)(?:\s*,\s*(\w+))?\s+in\s/.exec(this.#text.slice(this.#at));
    if (comprehension === null) return open === '[' ? `[${this.#upTo(']')}]` : this.#object();
    const [head, one, two] = comprehension;
    this.#at += head.length;
    const of = this.#upTo(':');
    const key = open === '{' ? this.#upTo('=>') : 'null';
    const value = this.expression(close);
    const isIf = this.#text.startsWith('if', this.#at);
    if (isIf) this.#at += 2;
    const condition = isIf ? this.expression(close) : 'true';
    this.#at += 1;
    const names = two === undefined ? `_, ${one}` : `${one}, ${two}`;
    return `${open === '[' ? 'list$' : 'map$'}(${of}, (${names}) => (${condition}) ? [${key}, ${value}] : undefined)`;
  }

  #object(): string {
    const entries: string[] = [];
    for (;;) {
      const [blank, name] = /^[\s,]*(?:"?([\w.-]+)"?\s*=\s*)?/.exec(this.#text.slice(this.#at))!;
      this.#at += blank.length;
      if (name === undefined) break;
      entries.push(`${JSON.stringify(name)}: ${this.expression(',\n}')}`);
    }
    this.#at += 1;
    return `({${entries.join(', ')}})`;
  }
}

type Collection = readonly unknown[] | Readonly<Record<string, unknown>>;
const sorted = (map: object): [string, unknown][] => Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1));
const entriesOf = (of: Collection): [unknown, unknown][] => (Array.isArray(of) ? [...of.entries()] : sorted(of));
const chosen = (of: Collection, item: (key: unknown, value: unknown) => [unknown, unknown] | undefined) =>
  entriesOf(of)
    .map(([key, value]) => item(key, value))
    .filter((each) => each !== undefined);

function requireThat<T>(holds: boolean, value: T): T {
  if (!holds) throw new Error(`not this: ${JSON.stringify(value)}`);
  return value;
}
const isNumber = (value: unknown): boolean =>
  (typeof value === 'number' || (typeof value === 'string' && value !== '')) && Number.isFinite(Number(value));
const attempt = (read: () => unknown): { readonly value: unknown } | undefined => {
  try {
    const value = read();
    return value === undefined ? undefined : { value };
  } catch {
    return undefined;
  }
};

/** A name with `$` is no property of a value. */
const FUNCTIONS: Readonly<Record<string, unknown>> = {
  list$: (of: Collection, item: Parameters<typeof chosen>[1]) => chosen(of, item).map(([, value]) => value),
  map$: (of: Collection, item: Parameters<typeof chosen>[1]) => Object.fromEntries(chosen(of, item)),
  alltrue$: (list: readonly unknown[]) => list.every((each) => each === true),
  can$: (read: () => unknown) => attempt(read) !== undefined,
  ceil$: Math.ceil,
  coalesce$: (...values: unknown[]) => values.find((value) => value !== undefined && value !== null),
  concat$: (...lists: unknown[][]) => lists.flat(),
  contains$: (list: readonly unknown[], value: unknown) => list.includes(value),
  distinct$: (list: readonly unknown[]) => [...new Set(list)],
  file$: (path: string) => readFileSync(path, 'utf8'),
  floor$: (value: unknown) => Math.floor(requireThat(typeof value === 'number', value as number)),
  join$: (separator: string, list: readonly unknown[]) => list.join(separator),
  jsondecode$: (text: string): unknown => JSON.parse(text),
  jsonencode$: (value: unknown) => JSON.stringify(value),
  keys$: (map: object) => sorted(map).map(([name]) => name),
  length$: (of: string | Collection) => (typeof of === 'string' ? of.length : Object.keys(of).length),
  max$: Math.max,
  merge$: (...maps: object[]) => Object.assign({}, ...maps) as object,
  min$: Math.min,
  regex$: (pattern: string, text: string) =>
    requireThat(typeof text === 'string' && new RegExp(pattern).test(text), text),
  replace$: (text: string, from: string, to: string) =>
    /^\/.*\/$/.test(from) ? text.replaceAll(new RegExp(from.slice(1, -1), 'g'), to) : text.replaceAll(from, to),
  startswith$: (text: string, start: string) => text.startsWith(start),
  sum$: (list: readonly number[]) => list.reduce((sum, each) => sum + each),
  tobool$: (value: unknown) =>
    requireThat(['true', 'false', true, false].includes(value as string), String(value)) === 'true',
  tonumber$: (value: unknown) => Number(requireThat(isNumber(value), value)),
  tostring$: (value: unknown) => requireThat(value !== undefined, value) as string,
  try$: (...reads: (() => unknown)[]) =>
    reads.reduce<ReturnType<typeof attempt>>((found, read) => found ?? attempt(read), undefined)?.value,
  values$: (map: object) => sorted(map).map(([, value]) => value),
};
