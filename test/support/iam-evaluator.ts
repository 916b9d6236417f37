/** An evaluator of IAM policies that we did not write: @cloud-copilot/iam-simulate, with its data of AWS's actions. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Call } from '../../scripts/iam/evaluate.ts';
import type { Statement } from '../../scripts/iam/role-policies.ts';

/** Not a literal: the type checker must not need the package. */
const PACKAGE: string = '@cloud-copilot/iam-simulate';
const ROLE = 'arn:aws:iam::000000000000:role/function';

/** .ci/run installs it. It is no dependency: its license is AGPL-3.0-or-later, which many companies refuse. */
export const hasTheirEvaluator = (): boolean =>
  existsSync(fileURLToPath(new URL(`../../node_modules/${PACKAGE}`, import.meta.url)));

export type TheirDecision =
  | 'Allowed'
  | 'ImplicitlyDenied'
  | 'ExplicitlyDenied'
  /** No such action, or none on such a resource: AWS has no call like this. */
  | { readonly impossible: string };

interface Package {
  runSimulation(
    simulation: object,
    options: object,
  ): Promise<
    | { readonly resultType: 'error'; readonly errors: { readonly message: string } }
    | {
        readonly resultType: 'single' | 'wildcard';
        readonly overallResult: 'Allowed' | 'ImplicitlyDenied' | 'ExplicitlyDenied';
      }
  >;
}

export type TheirEvaluator = (statements: readonly Statement[], call: Call) => Promise<TheirDecision>;

export async function theirEvaluator(): Promise<TheirEvaluator> {
  const { runSimulation } = (await import(PACKAGE)) as Package;
  return async (statements, { action, resource, context }) => {
    const outcome = await runSimulation(
      {
        // The resource counts as one of the account of the role, so the policies of the role decide alone.
        request: {
          ...{ principal: ROLE, action, contextVariables: context },
          resource: { resource, accountId: ROLE.split(':')[4] },
        },
        identityPolicies: [{ name: 'role', policy: policyOf(statements) }],
        ...{ serviceControlPolicies: [], resourceControlPolicies: [] },
      },
      {},
    );
    if (outcome.resultType !== 'error') return outcome.overallResult;
    const { message } = outcome.errors;
    if (message === 'policy.errors') throw new Error(`a policy is invalid: ${JSON.stringify(outcome.errors)}`);
    return { impossible: message };
  };
}

const policyOf = (statements: readonly Statement[]) => ({
  Version: '2012-10-17',
  Statement: statements.map(({ effect, actions, resources, conditions }) => ({
    Effect: effect,
    Action: actions,
    Resource: resources,
    Condition: conditions,
  })),
});
