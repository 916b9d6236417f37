/**
 * Marks for Stryker what no test has to see: sentences, messages of errors, log lines and metrics, and the defaults of
 * names and uids, which only the compiler needs: every stored object has them.
 */
import type { Ignorer } from '@stryker-mutator/api/ignore';
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** What is read of a node of Babel's syntax tree. */
export interface Syntax {
  readonly type: string;
  readonly name?: string;
  readonly value?: unknown;
  readonly callee?: Syntax;
  readonly expression?: Syntax;
  readonly object?: Syntax;
  readonly property?: Syntax;
  readonly operator?: string;
  readonly left?: Syntax;
}

const SILENT_CALL = /(^|\.)(log|logger|meter|console)\.\w+$/;

const textOf = ({ name = '', object, property }: Syntax): string =>
  object === undefined || property === undefined ? name : `${textOf(object)}.${textOf(property)}`;

/** `object.metadata.name ?? ''`, but not `object?.metadata.name ?? ''`: there the object may be absent. */
const NAME_OF_OBJECT = /(^|\.)metadata\.(name|uid)$/;
const isDefaultOfName = (value: unknown, { operator, left }: Syntax): boolean =>
  value === '' && operator === '??' && left?.type === 'MemberExpression' && NAME_OF_OBJECT.test(textOf(left));

/** Why a node and all below it have no mutants; undefined: they have. */
export function reasonToIgnore({ type, value, callee, expression }: Syntax, parent?: Syntax): string | undefined {
  // A mutant removes the whole statement.
  if (type === 'ExpressionStatement' && expression !== undefined) return reasonToIgnore(expression);
  if (parent !== undefined && isDefaultOfName(value, parent)) return 'a default that no stored object needs';
  if (type === 'StringLiteral' && /\s/.test(String(value))) return 'a sentence';
  if (type === 'TemplateLiteral') return 'a text';
  if (callee === undefined) return undefined;
  if (type === 'CallExpression' && SILENT_CALL.test(textOf(callee))) return 'a log line or a metric';
  return type === 'NewExpression' && /(Error|Fault)$/.test(textOf(callee)) ? 'an error' : undefined;
}

const prose: Ignorer = {
  shouldIgnore(path) {
    const { node, parent } = path as unknown as { readonly node: Syntax; readonly parent?: Syntax };
    return reasonToIgnore(node, parent);
  },
};

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'prose', prose)];
