/** POST of pods/binding, which schedulers send. Source: upstream pkg/registry/core/pod/storage/storage.go. */

import { bindPod } from '../../../shared/kinds/pods/bind-pod.ts';
import { hubOfMachine, SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import { nodes, pods, sitepolicies } from '../../../shared/kinds/registry.ts';
import { mayHaveSiteHub, SITE_POLICIES_MAX, withSiteHub } from '../../../shared/kinds/site-policies/site-hub.ts';
import type { KubeNode, KubeObject } from '../../../shared/kinds/types.ts';
import { forbiddenField, notSupported, required, tooLong } from '../../../shared/kubernetes/causes.ts';
import { NAME_LENGTH_MAX } from '../../../shared/kubernetes/kubernetes.ts';
import { recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { pauseBefore, WRITE_ATTEMPTS_MAX, type WriteOptions } from './write-options.ts';

/** The resource that conflicts name. */
const PODS_BINDING = { group: '', resource: 'pods/binding' } as const;
const BINDING = { group: '', kind: 'Binding' } as const;

/** Binds the pod to the node of the binding. A pod is bound once. */
export async function bindToNode(
  dependencies: ApiDependencies,
  target: ResourceTarget,
  binding: KubeObject,
  options: WriteOptions,
): Promise<void> {
  const { kind: targetKind, name: targetName } = recordOf(binding.target);
  const kind = textOf(targetKind);
  const nodeName = textOf(targetName);
  const causes = [
    ...(kind === '' || kind === 'Node' ? [] : [notSupported('target.kind', kind, ['Node', '<empty>'])]),
    ...(nodeName === '' ? [required('target.name')] : []),
    // No Node has a longer name, and it may be longer than a key of the store.
    ...(nodeName.length > NAME_LENGTH_MAX ? [tooLong('target.name', NAME_LENGTH_MAX)] : []),
  ];
  if (binding.metadata.annotations?.[SITE_HUB] !== undefined) {
    causes.push(forbiddenField(`metadata.annotations[${SITE_HUB}]`, 'a binding cannot bring it'));
  }
  if (causes.length > 0) throw status.invalid(BINDING, target.name, causes);
  const storage = dependencies.storageOf(pods);
  let read: ReturnType<NodeOf> | undefined;
  const nodeOf: NodeOf = () => {
    read ??= dependencies.storageOf(nodes).get('', nodeName);
    return read;
  };
  const timeout = await timeoutOn(dependencies, nodeOf);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const old = await storage.get(target.namespace, target.name);
    if (old === undefined) throw status.notFound(pods, target.name);
    const uid = binding.metadata.uid ?? '';
    if (uid !== '' && uid !== old.metadata.uid) {
      throw status.conflict(
        PODS_BINDING,
        target.name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
      );
    }
    const outcome = bindPod(old, nodeName, options.nowMs, timeout);
    if (outcome.kind === 'refused') throw status.conflict(PODS_BINDING, target.name, outcome.why);
    if (options.dryRun) return;
    const bound = await ofSite(
      dependencies,
      withAnnotations(outcome.pod, binding.metadata.annotations),
      nodeName,
      nodeOf,
    );
    if ((await storage.update(bound, old)).kind === 'written') return;
  }
  throw status.conflict(PODS_BINDING, target.name);
}

/** The Node of the binding, read once when it is needed. */
type NodeOf = () => Promise<KubeNode | undefined>;

/** The Node is read only if profiles differ in this time. */
async function timeoutOn(
  { podEvictionTimeoutSeconds: fromSeconds, podEvictionTimeoutOn }: ApiDependencies,
  nodeOf: NodeOf,
): Promise<Parameters<typeof bindPod>[3]> {
  if (podEvictionTimeoutOn === undefined) return undefined;
  const node = await nodeOf();
  return node === undefined ? undefined : { fromSeconds, toSeconds: podEvictionTimeoutOn(node.metadata.labels) };
}

/**
 * Who binds the pod says which node: nothing requires that the Node is as it was read. Where the machine obeys no hub,
 * no policy is read.
 */
async function ofSite(
  { storageOf }: ApiDependencies,
  pod: KubeObject,
  name: string,
  nodeOf: NodeOf,
): Promise<KubeObject> {
  const node = mayHaveSiteHub(pod) ? await nodeOf() : undefined;
  const siteHub = node && hubOfMachine(node);
  if (siteHub === undefined) return pod;
  const { items } = await storageOf(sitepolicies).list({ namespace: '', limit: SITE_POLICIES_MAX });
  return withSiteHub(pod, { name, siteHub }, items);
}

function withAnnotations(pod: KubeObject, annotations: Readonly<Record<string, string>> | undefined): KubeObject {
  if (annotations === undefined) return pod;
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...annotations } } };
}
