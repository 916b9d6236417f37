/**
 * Expressions as Kubernetes evaluates them: its functions, its limits, its messages. Programs load this module when
 * there is an expression to evaluate (docs/decisions).
 */

import { addressFunctions } from './addresses.ts';
import { authorizerFunctions } from './authorizer.ts';
import { checkTypes } from './check.ts';
import { type Environment, withoutDot } from './environment.ts';
import { estimateCost, type SizeAt } from './estimate.ts';
import { extensionFunctions } from './extensions.ts';
import { type Declaration, declare, type Functions, functionsOf, readsFirst } from './functions.ts';
import { type Activation, CostExceeded, compile, Run } from './interpret.ts';
import { kubernetesFunctions } from './kubernetes-functions.ts';
import { childrenOf, parseExpression } from './parse.ts';
import { patternFault } from './patterns.ts';
import { quantityFunctions } from './quantities.ts';
import { standardFunctions } from './standard.ts';
import { type Expression, type Issue, issuesText } from './syntax.ts';
import { timeFunctions } from './times.ts';
import { type CelType, isAssignable, typeText } from './types.ts';
import { CelFailure, type CelValue } from './values.ts';

/** The cost of one evaluation, at most: 0.1 s in upstream (k8s.io/apiserver, pkg/apis/cel/config.go). */
export const CALL_COST_MAX = 1_000_000;

const jsonPatchFunctions: readonly Declaration[] = [
  declare(
    'jsonpatch.escapeKey',
    'string -> string',
    (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1'),
    readsFirst,
  ),
];

const COMMON = [
  standardFunctions,
  timeFunctions,
  extensionFunctions,
  kubernetesFunctions,
  quantityFunctions,
  addressFunctions,
  authorizerFunctions,
];

export const celFunctions: Functions = functionsOf(...COMMON);
/** Those of mutations too. */
export const mutationFunctions: Functions = functionsOf(...COMMON, jsonPatchFunctions);

export interface Program {
  readonly type: CelType;
  readonly evaluate: (variables: Activation, costMax: number) => Evaluation;
}

export interface Evaluation {
  readonly value: CelValue;
  readonly cost: number;
}

export type Compiled =
  | { readonly kind: 'compiled'; readonly program: Program }
  /** `message`: with the line and column of each fault. */
  | { readonly kind: 'refused'; readonly message: string };

/** The message of an evaluation that exceeded its cost. */
export const COST_EXCEEDED = new CostExceeded().message;

/** Whether an expression that compiles reads a variable of the environment. */
export function readsVariable(source: string, name: string): boolean {
  const parsed = parseExpression(source);
  const reads = (node: Expression): boolean =>
    (node.kind === 'identifier' && withoutDot(node.name) === name) || childrenOf(node).some(reads);
  return parsed.kind !== 'malformed' && reads(parsed.expression);
}

/** What an expression that compiles costs at most. Units of cel-go; infinite where a size has no bound. */
export function expressionCostMax(environment: Environment, source: string, sizeAt: SizeAt): number {
  const parsed = parseExpression(source);
  return parsed.kind === 'malformed' ? 0 : estimateCost(environment, parsed.expression, sizeAt);
}

/** @param results the expression must have one of these types */
export function compileExpression(environment: Environment, source: string, results: readonly CelType[]): Compiled {
  const parsed = parseExpression(source);
  if (parsed.kind === 'malformed') {
    return { kind: 'refused', message: `compilation failed: ${issuesText(source, parsed.issues)}` };
  }
  const { type, issues } = checkTypes(environment, parsed.expression);
  const all = [...issues, ...literalFaults(parsed.expression)];
  if (all.length > 0) return { kind: 'refused', message: `compilation failed: ${issuesText(source, all)}` };
  if (!results.some((result) => isAssignable(result, type, new Map()))) {
    const names = results.map(typeText);
    const wanted = names.length === 1 ? names[0] : `one of [${names.join(' ')}]`;
    return { kind: 'refused', message: `must evaluate to ${wanted}` };
  }
  const step = compile(environment, parsed.expression);
  return {
    kind: 'compiled',
    program: {
      type,
      evaluate(variables, costMax) {
        const run = new Run(variables, Math.min(costMax, CALL_COST_MAX));
        try {
          return { value: step(run), cost: run.cost };
        } catch (error) {
          if (!(error instanceof CostExceeded)) throw error;
          return { value: new CelFailure(error.message), cost: run.cost };
        }
      },
    },
  };
}

/** Patterns that are written in the expression are compiled with it. */
function literalFaults(expression: Expression): readonly Issue[] {
  const issues: Issue[] = [];
  const visit = (node: Expression): void => {
    if (node.kind === 'call' && ['matches', 'find', 'findAll'].includes(node.name)) {
      const pattern = node.args[node.target === undefined ? 1 : 0];
      if (pattern?.kind === 'constant' && typeof pattern.value === 'string') {
        const fault = patternFault(pattern.value);
        if (fault !== undefined) issues.push({ at: pattern.at, message: `invalid matches argument: ${fault}` });
      }
    }
    for (const child of childrenOf(node)) visit(child);
  };
  visit(expression);
  return issues;
}
