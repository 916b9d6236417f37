/**
 * The part of JSONPath that definitions use: members, indices, wildcards and filters on equality. Pure.
 * Source: k8s.io/client-go util/jsonpath.
 */

import { getMember, isJsonObject } from '../../kubernetes/json.ts';

type Step =
  | { readonly kind: 'member'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  /** `[?(@.type=="Ready")]` */
  | { readonly kind: 'filter'; readonly path: readonly Step[]; readonly equal: boolean; readonly text: string };

const STEP =
  /\.(?<dotted>(?:\\.|[^.[\\])+)|\['(?<quoted>(?:\\.|[^'\\])*)'\]|\["(?<double>(?:\\.|[^"\\])*)"\]|\[(?<index>-?\d+)\]|(?<all>\[\*\])|\[\?\(@(?<filter>[^=!)]*)(?<operator>==|!=)\s*(?<literal>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]/y;

export type JsonPath = readonly Step[];

/** undefined: not a path of this form. @param text such as `.spec.replicas` */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (text === '.') return [];
  const steps: Step[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const groups = STEP.exec(text)?.groups;
    if (groups === undefined) return undefined;
    const at = STEP.lastIndex;
    const step = stepOf(groups);
    STEP.lastIndex = at;
    if (step === undefined) return undefined;
    steps.push(step);
  }
  return steps;
}

const unescaped = (name: string): string => name.replace(/\\(.)/g, '$1');

function stepOf({
  dotted,
  quoted,
  double,
  index,
  all,
  filter,
  operator,
  literal = '',
}: Record<string, string>): Step | undefined {
  if (dotted === '*') return { kind: 'all' };
  const name = dotted ?? quoted ?? double;
  if (name !== undefined) return { kind: 'member', name: unescaped(name) };
  if (index !== undefined) return { kind: 'index', index: Number(index) };
  if (all !== undefined) return { kind: 'all' };
  const path = parseJsonPath((filter ?? '').trim());
  if (path === undefined) return undefined;
  return { kind: 'filter', path, equal: operator === '==', text: literal.replace(/^(["'])(.*)\1$/, '$2') };
}

/** The members on the path of a scale, which upstream parts at its dots. */
export const membersOn = (path: string): readonly string[] => path.replace(/^\./, '').split('.');

export const valueOfScale = (path: string, object: unknown): unknown =>
  membersOn(path).reduce((value, name) => (isJsonObject(value) ? getMember(value, name) : undefined), object);

/** Every value at the path, in order. */
export function valuesAt(path: JsonPath, root: unknown): unknown[] {
  return path.reduce<unknown[]>((values, step) => values.flatMap((value) => valuesOfStep(step, value)), [root]);
}

function valuesOfStep(step: Step, value: unknown): unknown[] {
  switch (step.kind) {
    case 'member':
      return isJsonObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'index': {
      const item = Array.isArray(value) ? value.at(step.index) : undefined;
      return item === undefined ? [] : [item];
    }
    case 'all':
      return Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : [];
    case 'filter':
      return (Array.isArray(value) ? value : []).filter((item) => {
        const [found] = valuesAt(step.path, item);
        return found !== undefined && (String(found) === step.text) === step.equal;
      });
  }
}
