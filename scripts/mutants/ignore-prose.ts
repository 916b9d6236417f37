/** Marks for Stryker what no test has to see: sentences, messages of errors, log lines and metrics. */
import type { Ignorer } from '@stryker-mutator/api/ignore';
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** What is read of a node of Babel's syntax tree. */
export interface Syntax {
  readonly type: string;
  readonly name?: string;
  readonly value?: unknown;
  readonly callee?: Syntax;
  readonly object?: Syntax;
  readonly property?: Syntax;
}

const SILENT_CALL = /(^|\.)(log|logger|meter|console)\.\w+$/;

const textOf = ({ name = '', object, property }: Syntax): string =>
  object === undefined || property === undefined ? name : `${textOf(object)}.${textOf(property)}`;

/** Why a node and all below it have no mutants; undefined: they have. */
export function reasonToIgnore({ type, value, callee }: Syntax): string | undefined {
  if (type === 'StringLiteral' && /\s/.test(String(value))) return 'a sentence';
  if (type === 'TemplateLiteral') return 'a text';
  if (callee === undefined) return undefined;
  if (type === 'CallExpression' && SILENT_CALL.test(textOf(callee))) return 'a log line or a metric';
  return type === 'NewExpression' && /(Error|Fault)$/.test(textOf(callee)) ? 'an error' : undefined;
}

const prose: Ignorer = { shouldIgnore: (path) => reasonToIgnore((path as unknown as { node: Syntax }).node) };

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'prose', prose)];
