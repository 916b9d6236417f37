/**
 * Evicts the pods of a node, as `kubectl drain --ignore-daemonsets` does: a pod that no controller replaces, or that
 * has data on the node, stays. A PodDisruptionBudget may refuse.
 */
import { MIRROR_POD_ANNOTATION } from '../../shared/access/node-restriction.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { controllerOf, recordOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { Upstream, UpstreamAnswer } from './upstream.ts';

/** The page waits 30 s for an answer. Milliseconds. */
const DRAIN_MS_MAX = 20_000;
/** A node runs at most 110 pods by default. */
const PODS_MAX = 500;

interface PodPage {
  readonly items?: readonly KubePod[];
  /** `continue`: there are more. */
  readonly metadata?: { readonly continue?: string };
}

interface Drained {
  /** Pods that were evicted, or would be. */
  evicted: number;
  /** Pods that stay, with the reason. */
  readonly refused: string[];
}

export async function evictPods(
  upstream: Upstream,
  node: string,
  { isDryRun, signal }: { readonly isDryRun: boolean; readonly signal: AbortSignal },
): Promise<UpstreamAnswer> {
  const selector = new URLSearchParams({ fieldSelector: `spec.nodeName=${node}`, limit: String(PODS_MAX) });
  const listed = await upstream.send({ method: 'GET', target: `/api/v1/pods?${selector}`, signal });
  if (listed.status !== 200) return listed;
  const { items = [], metadata } = JSON.parse(listed.text) as PodPage;
  const drained: Drained = { evicted: 0, refused: [] };
  const untilMs = performance.now() + DRAIN_MS_MAX;
  let later = 0;
  for (const pod of items.filter(isDrained)) {
    if (performance.now() > untilMs) {
      later += 1;
      continue;
    }
    const { namespace = '', name = '' } = pod.metadata;
    const why = whyItStays(pod) ?? (await evict(upstream, { namespace, name }, { isDryRun, signal }));
    if (why === undefined) drained.evicted += 1;
    else drained.refused.push(`${namespace}/${name}: ${why}`);
  }
  if (later > 0) drained.refused.push(`${later} pods for lack of time: drain the node again`);
  if (metadata?.continue) drained.refused.push(`pods beyond the first ${PODS_MAX}: drain the node again`);
  return { ...listed, contentType: 'application/json', text: JSON.stringify(drained) };
}

/** Undefined: it was evicted. */
async function evict(
  upstream: Upstream,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { isDryRun, signal }: { readonly isDryRun: boolean; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { status, text } = await upstream.send({
    method: 'POST',
    target: `/api/v1/namespaces/${namespace}/pods/${name}/eviction${isDryRun ? '?dryRun=All' : ''}`,
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } },
    signal,
  });
  return status < 300 ? undefined : textOf(recordOf(JSON.parse(text))['message']);
}

/** Pods of DaemonSets, static pods, and pods that are finished or being deleted, are left alone. */
const isDrained = (pod: KubePod): boolean =>
  controllerOf(pod)?.kind !== 'DaemonSet' &&
  pod.metadata.annotations?.[MIRROR_POD_ANNOTATION] === undefined &&
  pod.metadata.deletionTimestamp === undefined &&
  pod.status?.phase !== 'Succeeded' &&
  pod.status?.phase !== 'Failed';

function whyItStays(pod: KubePod): string | undefined {
  if (controllerOf(pod) === undefined) return 'no controller would create it again';
  if (pod.spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined)) return 'it has data in an emptyDir volume';
  return undefined;
}
