/**
 * Marks for Stryker what no test has to see: sentences, messages of errors, log lines and metrics, and defaults in the
 * metadata of an object, which only the compiler needs: every stored object has these fields.
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
  /** Of the name of a private member. */
  readonly id?: Syntax;
  readonly operator?: string;
  readonly left?: Syntax;
  readonly key?: Syntax;
  readonly init?: Syntax | null;
}

/** A node and what it is in. */
export interface Place {
  readonly node: Syntax;
  readonly parentPath?: Place | null;
}

const SILENT_CALL = /(^|\.)(log|logger|meter|console)\.\w+$/;

const ERROR_NAME = /(Error|Fault)$/;

const textOf = ({ id, name = id?.name ?? '', object, property }: Syntax): string =>
  object === undefined || property === undefined ? name : `${textOf(object)}.${textOf(property)}`;

/** Fields that the Kubernetes type has as optional, and every stored object has. */
const FIELD_OF_OBJECT = /(^|\.)metadata\.(name|uid|resourceVersion|creationTimestamp)$/;
/** A namespace is one of them where the object is named after a kind that has namespaces. */
const NAMESPACE_OF_OBJECT =
  /(^|\.)(pod|claim|endpoints|service|set|replicaSet|deployment|job|cronJob|budget)\.metadata\.namespace$/;

/**
 * `object.metadata.name ?? ''`, `{ name = '' } = object.metadata` and `({ metadata: { name = '' } })`, but not
 * `object?.metadata.name ?? ''` or `{ name = '' } = object?.metadata ?? {}`: there the object may be absent.
 */
function isDefaultOfObject({ node, parentPath }: Place): boolean {
  if (node.value !== '' || parentPath == null) return false;
  const field = fieldWithDefault(parentPath);
  return FIELD_OF_OBJECT.test(field) || NAMESPACE_OF_OBJECT.test(field);
}

/** The path to the field with `place` as its default, like `pod.metadata.name`; '' for any other. */
function fieldWithDefault({ node: { type, operator, left }, parentPath }: Place): string {
  if (operator === '??' && left?.type === 'MemberExpression') return textOf(left);
  return type === 'AssignmentPattern' ? fieldOf(parentPath) : '';
}

/** The path to a property of a pattern, through the patterns around it. */
function fieldOf(property: Place | null | undefined): string {
  const name = property?.node.key?.name ?? '';
  const around = property?.parentPath?.parentPath;
  if (name === '' || around == null) return '';
  const { type, init } = around.node;
  if (type === 'ObjectProperty') return `${fieldOf(around)}.${name}`;
  if (type !== 'VariableDeclarator') return name;
  return init?.type === 'MemberExpression' || init?.type === 'Identifier' ? `${textOf(init)}.${name}` : '';
}

/** `override readonly name = 'EnvError'` in its class. */
const isNameOfError = ({ node, parentPath }: Place): boolean =>
  parentPath?.node.type === 'ClassProperty' &&
  parentPath.node.key?.name === 'name' &&
  ERROR_NAME.test(String(node.value));

/** Why a node and all below it have no mutants; undefined: they have. */
export function reasonToIgnore(place: Place): string | undefined {
  const { type, value, callee, expression } = place.node;
  // A mutant removes the whole statement.
  if (type === 'ExpressionStatement' && expression !== undefined) return reasonToIgnore({ node: expression });
  if (isNameOfError(place)) return 'an error';
  if (isDefaultOfObject(place)) return 'a default that no stored object needs';
  if (type === 'StringLiteral' && /\s/.test(String(value))) return 'a sentence';
  if (type === 'TemplateLiteral') return 'a text';
  if (callee === undefined) return undefined;
  if (type === 'CallExpression' && SILENT_CALL.test(textOf(callee))) return 'a log line or a metric';
  return type === 'NewExpression' && ERROR_NAME.test(textOf(callee)) ? 'an error' : undefined;
}

const prose: Ignorer = { shouldIgnore: (path) => reasonToIgnore(path as unknown as Place) };

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'prose', prose)];
