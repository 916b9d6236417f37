/** The writes of the console. The browser names an action and a node; the console composes the patch. */
import {
  PLANNED_REASON_ANNOTATION,
  PLANNED_SILENCE_SECONDS_MAX,
  PLANNED_UNTIL_ANNOTATION,
} from '../../shared/fleet/nodes/planned-silence.ts';
import type { KubeNode, Taint } from '../../shared/kinds/types.ts';
import { recordOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { isObjectName } from './allowed-paths.ts';
import { ConsoleError } from './console-access.ts';
import { evictPods } from './evict-pods.ts';
import type { Upstream, UpstreamAnswer } from './upstream.ts';

/**
 * The taint that permits deleting pods and detaching volumes of a node that is shut down.
 * Source: Kubernetes, "Node Shutdowns", section "Non-graceful node shutdown handling".
 */
const OUT_OF_SERVICE: Taint = {
  key: 'node.kubernetes.io/out-of-service',
  value: 'nodeshutdown',
  effect: 'NoExecute',
};

const ACTIONS = ['cordon', 'uncordon', 'drain', 'announceSilence', 'endSilence', 'outOfService'] as const;

const isSilence = (seconds: unknown): seconds is number =>
  typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= 1 && seconds <= PLANNED_SILENCE_SECONDS_MAX;

/** `until`: null removes the promise. */
const promise = (until: string | null, reason: string): object => ({
  metadata: {
    annotations: { [PLANNED_UNTIL_ANNOTATION]: until, [PLANNED_REASON_ANNOTATION]: reason === '' ? null : reason },
  },
});

const DRY_RUN = '?dryRun=All';
const MERGE_PATCH = 'application/merge-patch+json';

/** @throws ConsoleError 400 for a body that is no action */
export async function runNodeAction(
  upstream: Upstream,
  body: unknown,
  nowMs: number,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  const { action: name, node: nodeName, confirmation, seconds, reason, dryRun } = recordOf(body);
  const action = textOf(name);
  const node = textOf(nodeName);
  if (!isObjectName(node)) throw new ConsoleError(400, 'node must be the name of a node');
  const isDryRun = dryRun === true;
  const target = `/api/v1/nodes/${node}`;
  const patch = (change: object): Promise<UpstreamAnswer> =>
    upstream.send({
      method: 'PATCH',
      target: `${target}${isDryRun ? DRY_RUN : ''}`,
      body: change,
      contentType: MERGE_PATCH,
      signal,
    });
  switch (action) {
    case 'cordon':
      return await patch({ spec: { unschedulable: true } });
    case 'drain': {
      const cordoned = await patch({ spec: { unschedulable: true } });
      return cordoned.status === 200 ? await evictPods(upstream, node, { isDryRun, signal }) : cordoned;
    }
    case 'uncordon':
      return await patch({ spec: { unschedulable: null } });
    case 'announceSilence':
      if (!isSilence(seconds)) {
        throw new ConsoleError(400, `seconds must be a whole number from 1 to ${PLANNED_SILENCE_SECONDS_MAX}`);
      }
      // The API checks the reason.
      return await patch(promise(rfc3339(nowMs + seconds * 1_000), textOf(reason)));
    case 'endSilence':
      return await patch(promise(null, ''));
    case 'outOfService': {
      if (confirmation !== node) throw new ConsoleError(400, 'confirmation must be the name of the node');
      const read = await upstream.send({ method: 'GET', target, signal });
      if (read.status !== 200) return read;
      const { metadata, spec } = JSON.parse(read.text) as KubeNode;
      const taints = spec?.taints ?? [];
      if (taints.some(({ key, effect }) => key === OUT_OF_SERVICE.key && effect === OUT_OF_SERVICE.effect)) return read;
      // The version: a list is replaced as a whole, and a controller may have changed it since.
      return await patch({
        metadata: { resourceVersion: metadata.resourceVersion },
        spec: { taints: [...taints, OUT_OF_SERVICE] },
      });
    }
    default:
      throw new ConsoleError(400, `action must be one of ${ACTIONS.join(', ')}`);
  }
}
