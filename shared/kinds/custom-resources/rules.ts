/**
 * `x-kubernetes-validations`: the rules of a custom kind in CEL. Pure. Programs load this module when there is a rule.
 *
 * A rule is compiled at the first object that has a value at its node. A transition rule is one that reads `oldSelf`.
 * It is evaluated where the former value is known: of members, and of items of lists with keys. Other rules are not
 * evaluated for what an update leaves unchanged.
 *
 * Bounds: CALL_COST_MAX per expression as upstream, and OBJECT_COST_MAX for all rules of one object.
 *
 * Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/cel/{validation,compilation}.go.
 */

import { duplicate, forbiddenField, invalidValue, invalidWhole, required } from '../../kubernetes/causes.ts';
import type { Environment } from '../../kubernetes/cel/environment.ts';
import { times } from '../../kubernetes/cel/estimate.ts';
import {
  CALL_COST_MAX,
  COST_EXCEEDED,
  celFunctions,
  compileExpression,
  expressionCostMax,
  type Program,
  readsVariable,
} from '../../kubernetes/cel/expressions.ts';
import { BOOL, type CelType, optionalOf, STRING } from '../../kubernetes/cel/types.ts';
import { CelFailure, CelOptional, type CelValue, NONE } from '../../kubernetes/cel/values.ts';
import type { JsonObject } from '../../kubernetes/json.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { childrenMax, extentsOf, RuleCosts, sizesOf } from './rule-costs.ts';
import { type RuleTypes, RuleValues, ruleTypes } from './rule-values.ts';
import type { SchemaNode } from './schema-node.ts';
import { FAULTS_MAX, membersOf, type Place, unchangedPlaces, WITHOUT_PATH } from './validate-value.ts';

/** All rules of one object together, as all policies of one request. Upstream: 10,000,000. */
const OBJECT_COST_MAX = 4_000_000;
/** MaxEvaluatedMessageExpressionSizeBytes. */
const MESSAGE_LENGTH_MAX = 5 * 1_024;

const OUT_OF_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';
const NO_MORE = 'no further validation rules will be run';
const INVALID_OBJECT =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';

/** Reasons of faults after which rules are not evaluated. */
const BLOCKING = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

interface Fault {
  readonly member: 'rule' | 'messageExpression' | 'fieldPath' | 'optionalOldSelf';
  readonly value: unknown;
  readonly detail: string;
}

interface Rule {
  /** The message or else the expression. */
  readonly label: string;
  readonly message: string;
  readonly reason: unknown;
  readonly fieldPath: string | undefined;
  readonly readsOldSelf: boolean;
  readonly isOldSelfOptional: boolean;
  /** undefined: see the faults. */
  readonly program: Program | undefined;
  readonly messageProgram: Program | undefined;
  readonly messageExpression: string;
  readonly faults: readonly Fault[];
}

const rulesAt = ({ schema }: SchemaNode): readonly JsonObject[] => schema['x-kubernetes-validations'] ?? [];

const environmentOf = (rule: JsonObject, type: CelType, { fieldsOf }: RuleTypes): Environment => ({
  variables: new Map([
    ['self', type],
    ['oldSelf', rule['optionalOldSelf'] === true ? optionalOf(type) : type],
  ]),
  functions: celFunctions,
  fieldsOf,
  isConstructible: () => false,
});

function compileRule(rule: JsonObject, node: SchemaNode, type: CelType, types: RuleTypes): Rule {
  const text = (name: string): string => (typeof rule[name] === 'string' ? (rule[name] as string) : '');
  const faults: Fault[] = [];
  const isOldSelfOptional = rule['optionalOldSelf'] === true;
  const environment = environmentOf(rule, type, types);
  function compiled(member: 'rule' | 'messageExpression', expression: string, result: CelType): Program | undefined {
    const outcome = compileExpression(environment, expression, [result]);
    if (outcome.kind === 'compiled' && outcome.program.type === result) return outcome.program;
    const isMessage = member === 'messageExpression';
    const detail =
      outcome.kind === 'refused' && outcome.message.startsWith('compilation failed')
        ? `${isMessage ? 'messageExpression ' : ''}${outcome.message}`
        : `${isMessage ? 'messageExpression' : 'cel expression'} must evaluate to a ${isMessage ? 'string' : 'bool'}`;
    faults.push({ member, value: rule, detail });
    return undefined;
  }
  const expression = text('rule');
  const messageExpression = text('messageExpression');
  const program = compiled('rule', expression, BOOL);
  const messageProgram =
    messageExpression === '' ? undefined : compiled('messageExpression', messageExpression, STRING);
  const readsOldSelf = program !== undefined && readsVariable(expression, 'oldSelf');
  if (program !== undefined && !readsOldSelf && rule['optionalOldSelf'] !== undefined) {
    const detail = 'may not be set if oldSelf is not used in rule';
    faults.push({ member: 'optionalOldSelf', value: rule['optionalOldSelf'], detail });
  }
  const path = text('fieldPath');
  const fieldPath = path === '' ? undefined : normalizedPath(path, node);
  if (path !== '' && fieldPath === undefined) {
    faults.push({ member: 'fieldPath', value: path, detail: 'must be a valid path' });
  }
  const label = (text('message') === '' ? expression : text('message')).trim();
  return {
    label,
    message: text('message') === '' ? `failed rule: ${label}` : label,
    reason: rule['reason'],
    fieldPath,
    readsOldSelf,
    isOldSelfOptional,
    program,
    messageProgram,
    messageExpression,
    faults,
  };
}

const PATH_STEP = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/gy;
const ESCAPED: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '\\': '\\',
};

/** `.a['b.c']` as the path of a cause. undefined: it does not lead to a node below this one. */
function normalizedPath(path: string, from: SchemaNode): string | undefined {
  let node: SchemaNode | undefined = from;
  let normalized = '';
  let end = 0;
  for (const { 0: step, 1: name, 2: quoted = '' } of path.matchAll(PATH_STEP)) {
    const key: string = name ?? quoted.replaceAll(/\\(.)/g, (_, letter: string) => ESCAPED[letter] ?? '');
    if (node === undefined) return undefined;
    const isProperty: boolean = node.properties.size > 0;
    const next: SchemaNode | 'any' | undefined = isProperty ? node.properties.get(key) : node.additional;
    if (typeof next !== 'object') return undefined;
    normalized += isProperty ? `${normalized === '' ? '' : '.'}${key}` : `[${key}]`;
    node = next;
    end += step.length;
  }
  return end === path.length && end > 0 ? normalized : undefined;
}

/**
 * Why a definition cannot have its rules.
 * @param path of the schema: `spec.versions[0].schema.openAPIV3Schema`
 * @param isUnchanged the stored definition has the same schema
 */
export function ruleFaults(root: SchemaNode, path: string, isUnchanged: boolean): Cause[] {
  const types = ruleTypes(root);
  const found: Cause[] = [];
  const extentOf = extentsOf(root);
  const costs = new RuleCosts(isUnchanged);

  /**
   * @param uncorrelated the list above that has no keys: former values of its items are not known
   * @param countMax values of the node in one object. undefined: a list or map above has no declared bound
   */
  function check(
    node: SchemaNode,
    place: string,
    uncorrelated: string | undefined,
    countMax: number | undefined,
  ): void {
    if (!node.hasRules || found.length >= FAULTS_MAX) return;
    const type = types.typeOf(node);
    for (const [index, rule] of rulesAt(node).entries()) {
      const at = `${place}.x-kubernetes-validations[${index}]`;
      const extent = extentOf(node);
      if (type === undefined || extent === undefined) {
        found.push(invalidValue(`${at}.rule`, rule, 'the schema has no type that rules can read'));
        continue;
      }
      const { faults, readsOldSelf, program, messageProgram } = compileRule(rule, node, type, types);
      const costOf = (member: 'rule' | 'messageExpression'): number =>
        expressionCostMax(environmentOf(rule, type, types), String(rule[member]), sizesOf(extent));
      if (program) found.push(...costs.ofRule(`${at}.rule`, costOf('rule'), countMax, extent));
      if (program && messageProgram) {
        found.push(...costs.ofMessage(`${at}.messageExpression`, costOf('messageExpression')));
      }
      for (const { member, value, detail } of faults) found.push(invalidValue(`${at}.${member}`, value, detail));
      if (!readsOldSelf || uncorrelated === undefined) continue;
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
      found.push(invalidValue(`${at}.rule`, rule['rule'], detail));
    }
    const each = childrenMax(node);
    const below = countMax === undefined || each === undefined ? undefined : times(countMax, each);
    for (const [name, inner] of node.properties) check(inner, `${place}.properties[${name}]`, uncorrelated, below);
    if (typeof node.additional === 'object') {
      check(node.additional, `${place}.additionalProperties`, uncorrelated, below);
    }
    const isKeyed = node.schema['x-kubernetes-list-type'] === 'map';
    if (node.items) check(node.items, `${place}.items`, uncorrelated ?? (isKeyed ? undefined : place), below);
  }
  check(root, path, undefined, 1);
  return [...found, ...costs.ofTotal(path)];
}

/** @param causes the faults of the object by its schema @returns those by its rules */
export type EvaluateRules = (value: unknown, old: unknown, causes: readonly Cause[]) => readonly Cause[];

/** The rules of a schema. Keep the result: it has what was compiled. */
export function rulesOf(root: SchemaNode): EvaluateRules {
  const types = ruleTypes(root);
  const compiled = new Map<SchemaNode, readonly Rule[]>();
  const compiledAt = (node: SchemaNode): readonly Rule[] => {
    const type = types.typeOf(node);
    if (type === undefined) return [];
    const made = compiled.get(node) ?? rulesAt(node).map((rule) => compileRule(rule, node, type, types));
    compiled.set(node, made);
    return made;
  };
  return (value, old, causes) => {
    const isBlocked = causes.some(({ reason }) => BLOCKING.has(reason));
    if (isBlocked) return [invalidValue(WITHOUT_PATH, null, INVALID_OBJECT)];
    const evaluation = new ObjectEvaluation(compiledAt, new RuleValues(types));
    evaluation.visit({ node: root, value, old, path: '' }, true, false);
    return evaluation.found.slice(0, FAULTS_MAX);
  };
}

const keyedPath = (path: string, key: string): string => `${path}[${key}]`;

class ObjectEvaluation {
  readonly found: Cause[] = [];
  readonly #rulesOf: (node: SchemaNode) => readonly Rule[];
  readonly #values: RuleValues;
  readonly #isUnchanged = unchangedPlaces();
  #costLeft = OBJECT_COST_MAX;
  /** A bound was exceeded: nothing more is evaluated. */
  #isOver = false;

  constructor(compiledAt: (node: SchemaNode) => readonly Rule[], values: RuleValues) {
    this.#rulesOf = compiledAt;
    this.#values = values;
  }

  /** @param isInUnchanged the value is part of one that is as it was before */
  visit(place: Place, isResource: boolean, isInUnchanged: boolean): void {
    const { node, value, old } = place;
    if (!node.hasRules || value === null || value === undefined || this.#isOver) return;
    const isAsBefore = isInUnchanged || this.#isUnchanged(place);
    const rules = this.#rulesOf(node);
    for (const rule of rules) {
      if (this.#isOver || this.found.length >= FAULTS_MAX) return;
      const hasOld = old !== undefined && old !== null;
      if (rule.readsOldSelf ? hasOld || rule.isOldSelfOptional : !isAsBefore) this.#evaluate(rule, place, isResource);
    }
    for (const member of membersOf(place, keyedPath)) this.visit(member, member.node.isEmbedded, isAsBefore);
  }

  #evaluate(rule: Rule, place: Place, isResource: boolean): void {
    const { node, value, path } = place;
    const at = path === '' ? WITHOUT_PATH : path;
    const { type = '' } = node.schema;
    const report = (detail: string) => this.found.push(invalidValue(at, type, detail));
    if (rule.program === undefined) {
      report(`rule compile error: ${rule.faults[0]?.detail ?? ''}`);
      return;
    }
    const variables = this.#variables(rule, place, isResource);
    const result = this.#run(rule.program, variables);
    if (result === true) return;
    if (result === undefined) report(OUT_OF_BUDGET);
    else if (result instanceof CelFailure) {
      const { message } = result;
      if (message === COST_EXCEEDED) {
        this.#isOver = true;
        report(`'${message}': ${NO_MORE} due to call cost exceeds limit for rule: ${rule.label}`);
      } else if (message.startsWith('no such overload')) {
        const why = 'call arguments did not match a supported operator, function or macro signature';
        report(`'${message}': ${why} for rule: ${rule.label}`);
      } else report(`${message} evaluating rule: ${rule.label}`);
    } else {
      const below = rule.fieldPath;
      const field = below === undefined ? at : path === '' ? below : `${path}.${below}`;
      const { isFinal, text } = this.#message(rule, variables);
      const isWhole = type === 'object' || type === 'array';
      this.found.push(isFinal ? invalidValue(field, type, text) : failedRule(rule, field, isWhole, value, text));
    }
  }

  #variables(rule: Rule, { node, value, old }: Place, isResource: boolean) {
    return (name: string): CelValue | undefined => {
      if (name === 'self') return this.#values.of(node, value, isResource);
      if (name !== 'oldSelf') return undefined;
      const before = old === undefined || old === null ? undefined : this.#values.of(node, old, isResource);
      if (!rule.isOldSelfOptional) return before;
      return before === undefined ? NONE : new CelOptional(before);
    };
  }

  /** undefined: the bound of the object is exceeded. */
  #run(program: Program, variables: (name: string) => CelValue | undefined): CelValue | undefined {
    const left = this.#costLeft;
    const { value, cost } = program.evaluate(variables, left);
    this.#costLeft -= cost;
    const isExceeded = value instanceof CelFailure && value.message === COST_EXCEEDED;
    if (left > 0 && (!isExceeded || left >= CALL_COST_MAX)) return value;
    this.#isOver = true;
    return undefined;
  }

  /** What a failed rule says. `isFinal`: the bound that its message exceeded. */
  #message(rule: Rule, variables: (name: string) => CelValue | undefined): { isFinal: boolean; text: string } {
    if (rule.messageProgram === undefined) return { isFinal: false, text: rule.message };
    const made = this.#run(rule.messageProgram, variables);
    if (made === undefined) {
      return {
        isFinal: true,
        text: `messageExpression evaluation failed due to running out of cost budget, ${NO_MORE}`,
      };
    }
    if (made instanceof CelFailure && made.message === COST_EXCEEDED) {
      this.#isOver = true;
      const source = JSON.stringify(rule.messageExpression);
      return { isFinal: true, text: `${NO_MORE} due to call cost exceeds limit for messageExpression: ${source}` };
    }
    const text = typeof made === 'string' ? made.trim() : '';
    const isUsable = text !== '' && Buffer.byteLength(text) <= MESSAGE_LENGTH_MAX && !text.includes('\n');
    return { isFinal: false, text: isUsable ? text : rule.message };
  }
}

/** Objects and lists are not repeated in the message. */
function failedRule({ reason }: Rule, field: string, isWhole: boolean, value: unknown, detail: string): Cause {
  switch (reason) {
    case 'FieldValueForbidden':
      return forbiddenField(field, detail);
    case 'FieldValueRequired':
      return required(field, detail);
    case 'FieldValueDuplicate':
      return isWhole ? { ...duplicate(field, ''), message: 'Duplicate value' } : duplicate(field, value);
    default:
      return isWhole ? invalidWhole(field, detail) : invalidValue(field, value, detail);
  }
}
