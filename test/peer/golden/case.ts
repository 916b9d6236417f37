/** A recorded story with kubectl: commands in order and what each printed against a kube-apiserver. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** A string as it is, one JSON document, or several. */
export type Body = string | Record<string, unknown> | readonly Record<string, unknown>[];

export interface GoldenStep {
  readonly args: readonly string[];
  readonly stdin?: Body;
  readonly files?: Readonly<Record<string, Body>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly meanwhile?: readonly {
    readonly args: readonly string[];
    readonly stdin?: Body;
    readonly when_lines?: number;
    readonly after_ms?: number;
  }[];
  readonly until_lines?: number;
  readonly capture?: string;
  readonly only_if_served?: string;
  readonly service_account?: string;
  readonly check?: 'exit' | 'none';
  readonly exit: number | null;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exit_as?: 'nonzero';
  readonly stdout_as?: ComparedAs;
  readonly stderr_as?: ComparedAs;
  readonly stdout_match?: readonly string[];
  readonly stderr_match?: readonly string[];
  readonly keep?: string;
  readonly ignore?: readonly string[];
  readonly normalise?: readonly (readonly [string, string])[];
  readonly variants?: readonly {
    readonly kubectl: readonly (number | string)[];
    readonly exit?: number | null;
    readonly stdout?: string;
    readonly stderr?: string;
  }[];
}

export type ComparedAs = 'set' | 'json' | 'match' | 'any';

export interface GoldenCase {
  readonly name: string;
  readonly about: string;
  readonly ignore?: readonly string[];
  readonly normalise?: readonly (readonly [string, string])[];
  readonly steps: readonly GoldenStep[];
}

/**
 * The cases of a directory, by name; all of them, or those named (with or without .json). Throws on an unknown name.
 */
export function readCases(dir: string, names: readonly string[]): GoldenCase[] {
  const all = readdirSync(dir)
    .filter((file) => file.endsWith('.json'))
    .map((file) => basename(file, '.json'))
    .sort();
  const wanted = names.length === 0 ? all : names.map((name) => basename(name, '.json'));
  const unknown = wanted.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new Error(`no such case in ${dir}: ${unknown.join(', ')}`);
  return wanted.map((name) => JSON.parse(readFileSync(join(dir, `${name}.json`), 'utf8')) as GoldenCase);
}

/** What is expected of one release: a variant replaces the parts that it contains. */
export function expectationOf(step: GoldenStep, minor: number): GoldenStep {
  const variant = step.variants?.find(({ kubectl }) =>
    kubectl.some((release) => String(release).replace(/^1\./, '') === String(minor)),
  );
  if (variant === undefined) return step;
  const { kubectl: _, ...given } = variant;
  return { ...step, ...given };
}

export function textOf(body: Body | undefined): string | undefined {
  if (body === undefined || typeof body === 'string') return body;
  if (Array.isArray(body)) return body.map((document) => `${JSON.stringify(document)}\n`).join('');
  return JSON.stringify(body);
}
