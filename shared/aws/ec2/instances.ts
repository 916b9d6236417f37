/**
 * Describes the instances of nodes.
 *
 * A filter returns neither instances that EC2 does not know nor those of other accounts. So each instance that the
 * response lacks is requested by its id. The error NotFound means `notFound`, a response without the instance
 * `foreign`. A pass makes few of these calls (instance-confirmation.ts). The other missing instances are `failed` until
 * a later pass.
 */
import { hiddenInstance, splitByRegion, unrequestedAnswers } from '../../fleet/instances/answers-without-call.ts';
import type { Cloud, InstanceAnswer } from '../../fleet/instances/cloud.ts';
import type { InstanceState } from '../../fleet/instances/instance.ts';
import {
  type Confirmations,
  keepConfirmations,
  planConfirmations,
} from '../../fleet/instances/instance-confirmation.ts';
import { instanceScope } from '../../fleet/instances/provider-id.ts';
import type { CallPacing, Pass } from './call-pacing.ts';
import { MALFORMED } from './errors.ts';
import { type Ec2Account, type FoundInstance, findInstance, findInstances } from './found-instances.ts';
import { metadataOf } from './metadata.ts';

export function instanceDescriber(account: Ec2Account, pacing: CallPacing): Cloud['describeInstances'] {
  const confirmMissing = missingInstanceConfirmer(account);
  return async (instances) => {
    const { ids, foreign } = splitByRegion(instances, account);
    const answers = new Map<string, InstanceAnswer>();
    for (const [id, answer] of foreign) answers.set(id, { answer });
    if (ids.length === 0) return answers;
    const pass = pacing.startPass();
    const missing: string[] = [];
    for (const [id, result] of await findInstances(account, pass, ids)) {
      if ('kind' in result) answers.set(id, { answer: result });
      else if (result.found !== undefined) answers.set(id, instanceAnswer(account, result.found));
      else missing.push(id);
    }
    await confirmMissing(pass, missing, answers);
    pass.end();
    return answers;
  };
}

/** Adds the answers about missing instances. It keeps between passes what is known about each of them. */
function missingInstanceConfirmer(account: Ec2Account) {
  let confirmations: Confirmations = new Map();
  let passes = 0;
  return async (pass: Pass, missing: readonly string[], answers: Map<string, InstanceAnswer>): Promise<void> => {
    passes += 1;
    const passNumber = passes;
    const plan = planConfirmations(missing, confirmations, passNumber);
    const requested = new Set<string>();
    await pass.callEach(
      plan.requested,
      async (id) => {
        requested.add(id);
        answers.set(id, await confirmedAnswer(account, id));
      },
      (id, failure) => answers.set(id, { answer: failure }),
    );
    for (const [id, answer] of unrequestedAnswers(plan)) answers.set(id, { answer });
    const kinds = [...answers].map(([id, { answer }]) => [id, answer.kind] as const);
    confirmations = keepConfirmations(confirmations, passNumber, kinds, requested);
  };
}

async function confirmedAnswer(account: Ec2Account, id: string): Promise<InstanceAnswer> {
  const found = await findInstance(account.api, id);
  if (found === 'unknown') return { answer: { kind: 'notFound' } };
  if (found === 'hidden') return { answer: hiddenInstance(id) };
  return instanceAnswer(account, found);
}

function instanceAnswer({ region, accountId }: Ec2Account, { owner, instance }: FoundInstance): InstanceAnswer {
  const scope = instanceScope({ region: undefined, accountId: owner }, { region, accountId });
  if (scope.kind === 'foreign') return { answer: scope };
  const state = instance.State?.Name;
  if (!isInstanceState(state)) return { answer: MALFORMED };
  const launchedAtMs = instance.LaunchTime?.getTime();
  const answer = {
    kind: 'found',
    state,
    launchedAtMs: launchedAtMs === undefined || Number.isNaN(launchedAtMs) ? undefined : launchedAtMs,
  } as const;
  return state === 'terminated' ? { answer } : { answer, metadata: metadataOf(instance, region) };
}

const INSTANCE_STATES: ReadonlySet<string | undefined> = new Set<InstanceState>([
  'pending',
  'running',
  'stopping',
  'stopped',
  'shutting-down',
  'terminated',
]);
const isInstanceState = (state: string | undefined): state is InstanceState => INSTANCE_STATES.has(state);
