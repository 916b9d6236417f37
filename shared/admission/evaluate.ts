/**
 * Evaluates the expressions of policies for one request.
 *
 * Bounds: CALL_COST_MAX per expression as upstream, and REQUEST_COST_MAX for all policies of one request: no number of
 * policies raises the time of a request above it. What exceeds a bound fails as the policy says.
 *
 * An expression that asks what a user may do starts again when the answer is known. Its cost allows two questions.
 */

import type { KubeObject } from '../kinds/types.ts';
import {
  type AccessAsked,
  type AccessDecision,
  AccessUnknown,
  type AskAccess,
  CelAuthorizer,
  type ResourceAsked,
} from '../kubernetes/cel/authorizer.ts';
import type { Evaluation, Program } from '../kubernetes/cel/expressions.ts';
import { CelLazyFields, type Run } from '../kubernetes/cel/interpret.ts';
import { CelFailure, type CelValue, celFromJson } from '../kubernetes/cel/values.ts';
import type { CompiledPolicy, CompiledValidation, NamedProgram } from './compile-policy.ts';

/** All expressions of one request together, whatever the number of policies. Upstream: 10,000,000 per binding. */
const REQUEST_COST_MAX = 4_000_000;
/** Of it those of the conditions of a policy: RuntimeCELCostBudgetMatchConditions of k8s.io/apiserver. */
const CONDITIONS_COST_MAX = 2_500_000;
/** What a mutation costs besides its expression: the object is read and merged again. Per character. */
const MUTATED_CHARACTER_COST = 1;
/** MaxEvaluatedMessageExpressionSizeBytes. */
const MESSAGE_LENGTH_MAX = 5 * 1_024;

const OUT_OF_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';

/** Finds out what a user may do. */
export type FindAccess = (asked: AccessAsked) => Promise<AccessDecision>;

/** What the expressions of one request read. Values are made when one is read, and kept for the next policy. */
export interface EvaluatedRequest {
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  /** The value of `request`. */
  readonly request: object;
  /** undefined for a cluster-scoped object. */
  readonly namespaceObject: KubeObject | undefined;
  readonly requestResource: ResourceAsked;
  readonly findAccess: FindAccess;
}

export interface Decision {
  readonly kind: 'denied' | 'failed';
  readonly message: string;
  readonly reason: string;
}

/** Values, budget and answers that all policies of one request share. */
export interface Evaluator {
  /** Whether the conditions hold for this object. A text: they cannot be evaluated. */
  holds(policy: CompiledPolicy, current: KubeObject | undefined): Promise<boolean | string>;
  validate(policy: CompiledPolicy, params: KubeObject | undefined): Promise<Validated>;
  /** The values of the mutations, one after the other: `apply` changes the object between them. */
  mutate(
    policy: CompiledPolicy,
    params: KubeObject | undefined,
    before: KubeObject,
    apply: (value: CelValue, index: number) => KubeObject | Promise<KubeObject>,
  ): Promise<string | undefined>;
}

export interface Validated {
  readonly decisions: readonly Decision[];
  readonly auditAnnotations: readonly { readonly key: string; readonly value: string }[];
}

/** Variables of a policy: each is evaluated when an expression reads it, at the cost of that expression. */
class PolicyVariables extends CelLazyFields {
  readonly typeName = 'kubernetes.variables';
  readonly #programs: ReadonlyMap<string, NamedProgram>;
  readonly #known = new Map<string, CelValue>();

  constructor(programs: ReadonlyMap<string, NamedProgram>) {
    super();
    this.#programs = programs;
  }

  read(name: string, run: Run): CelValue | undefined {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const variable = this.#programs.get(name);
    if (variable === undefined) return undefined;
    const { value, cost } = variable.program.evaluate(run.variable, Math.max(0, run.costMax - run.cost));
    run.charge(cost);
    const result =
      value instanceof CelFailure
        ? new CelFailure(`composited variable "${name}" fails to evaluate: ${value.message}`)
        : value;
    this.#known.set(name, result);
    return result;
  }
}

class Budget {
  left: number;
  readonly #shared: Budget | undefined;
  constructor(costMax: number, shared?: Budget) {
    this.left = costMax;
    this.#shared = shared;
  }
  get rest(): number {
    return Math.max(0, Math.min(this.left, this.#shared?.rest ?? this.left));
  }
  spend(cost: number): void {
    this.left -= cost;
    this.#shared?.spend(cost);
  }
}

export function evaluatorFor(request: EvaluatedRequest): Evaluator {
  const shared = new Budget(REQUEST_COST_MAX);
  const answers = new Map<string, AccessDecision>();
  const ask: AskAccess = (asked) => {
    const answer = answers.get(JSON.stringify(asked));
    if (answer === undefined) throw new AccessUnknown(asked);
    return answer;
  };
  const authorizer = new CelAuthorizer(ask, { requestResource: request.requestResource });
  const values = new Map<string, CelValue>();
  const once = (name: string, json: unknown): CelValue => {
    const known = values.get(name);
    if (known !== undefined) return known;
    const value = celFromJson(json);
    values.set(name, value);
    return value;
  };
  let { object } = request;

  /** @param params undefined: the policy has none */
  function activation(policy: CompiledPolicy, params: KubeObject | undefined) {
    const variables = new PolicyVariables(policy.variables);
    const paramsValue = celFromJson(params);
    return (name: string): CelValue | undefined => {
      switch (name) {
        case 'object':
          return once('object', object);
        case 'oldObject':
          return once('oldObject', request.oldObject);
        case 'request':
          return once('request', request.request);
        case 'namespaceObject':
          return once('namespaceObject', request.namespaceObject);
        case 'params':
          return paramsValue;
        case 'authorizer':
          return authorizer;
        default:
          return name === 'variables' ? variables : undefined;
      }
    };
  }
  type Activation = ReturnType<typeof activation>;

  async function evaluate(program: Program, variables: Activation, budget: Budget): Promise<CelValue> {
    for (;;) {
      if (budget.rest === 0) return new CelFailure(OUT_OF_BUDGET);
      let outcome: Evaluation;
      try {
        outcome = program.evaluate(variables, budget.rest);
      } catch (error) {
        if (!(error instanceof AccessUnknown)) throw error;
        // Each question is charged before it is asked, so their number has a bound.
        budget.spend(QUESTION_COST);
        answers.set(JSON.stringify(error.asked), await request.findAccess(error.asked));
        continue;
      }
      budget.spend(outcome.cost);
      return outcome.value;
    }
  }

  async function holdsConditions(policy: CompiledPolicy, variables: Activation): Promise<boolean | CelFailure> {
    const budget = new Budget(CONDITIONS_COST_MAX, shared);
    let failure: CelFailure | undefined;
    for (const { name, program } of policy.conditions) {
      const value = await evaluate(program, variables, budget);
      if (value === false) return false;
      if (value instanceof CelFailure) {
        failure ??= new CelFailure(`match condition '${name}' resulted in error: ${value.message}`);
      }
    }
    return failure ?? true;
  }

  async function messageOf(validation: CompiledValidation, variables: Activation, budget: Budget): Promise<string> {
    const { message, messageProgram, expression } = validation;
    const made = messageProgram === undefined ? '' : await evaluate(messageProgram, variables, budget);
    const text = typeof made === 'string' ? made.trim() : '';
    if (text !== '' && text.length <= MESSAGE_LENGTH_MAX && !text.includes('\n')) return text;
    return message.trim() === '' ? `failed expression: ${expression.trim()}` : message.trim();
  }

  return {
    async holds(policy, current) {
      object = current;
      values.delete('object');
      const held = await holdsConditions(policy, activation(policy, undefined));
      return held instanceof CelFailure ? held.message : held;
    },

    async validate(policy, params) {
      const variables = activation(policy, params);
      const held = await holdsConditions(policy, variables);
      if (held === false) return { decisions: [], auditAnnotations: [] };
      if (held !== true) return { decisions: [failed(held.message)], auditAnnotations: [] };
      const budget = shared;
      const decisions: Decision[] = [];
      for (const validation of policy.validations) {
        const { program, expression, reason } = validation;
        const value = await evaluate(program, variables, budget);
        if (value instanceof CelFailure) {
          decisions.push(failed(failureText(expression, value)));
          if (value.message === OUT_OF_BUDGET) break;
        } else if (value !== true) {
          decisions.push({ kind: 'denied', message: await messageOf(validation, variables, budget), reason });
        }
      }
      const auditAnnotations: { key: string; value: string }[] = [];
      for (const { name: key, program, expression } of policy.auditAnnotations) {
        const value = await evaluate(program, variables, budget);
        if (value instanceof CelFailure) decisions.push(failed(failureText(expression, value)));
        else if (typeof value === 'string' && value.trim() !== '') auditAnnotations.push({ key, value: value.trim() });
      }
      return { decisions, auditAnnotations };
    },

    async mutate(policy, params, before, apply) {
      object = before;
      values.delete('object');
      const held = await holdsConditions(policy, activation(policy, params));
      if (held === false) return undefined;
      if (held !== true) return held.message;
      const budget = shared;
      for (const [i, { program, expression }] of policy.mutations.entries()) {
        // Variables read the object as the mutation before left it.
        const value = await evaluate(program, activation(policy, params), budget);
        if (value instanceof CelFailure) return failureText(expression, value);
        budget.spend(JSON.stringify(object ?? null).length * MUTATED_CHARACTER_COST);
        object = await apply(value, i);
        values.delete('object');
      }
      return undefined;
    },
  };
}

/** That of a check, which the expression pays again when it knows the answer. */
const QUESTION_COST = 350_000;

const failureText = (expression: string, { message }: CelFailure): string =>
  message === OUT_OF_BUDGET ? message : `expression '${expression}' resulted in error: ${message}`;

const failed = (message: string): Decision => ({ kind: 'failed', message, reason: 'Invalid' });
