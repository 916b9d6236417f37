/**
 * NodeRestriction: what the identity of a machine may change, judged with the objects as they are and as they would be.
 * The rules are in shared/domain/access/node-restriction.ts; here is when they are asked, and what they have to know. Likewise for our
 * own probe, which is no node.
 */

import { readsAsNode } from '../../domain/access/authorize.ts';
import { authorizeNode, nodeIdentity, type RestrictedObject } from '../../domain/access/node-restriction.ts';
import { PROBE_GROUP, PROBE_LEASE } from '../../domain/access/probe-identity.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import { refusedClaim } from '../../domain/cidrs/cluster-cidrs.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { textOf } from '../../kube/normal-form.ts';
import type { ResourceTarget } from '../../kube/request/request.ts';
import * as status from '../../kube/status.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { nodes } from '../kinds/registry.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

interface NodeCall {
  readonly descriptor: ResourceDescriptor;
  readonly target: ResourceTarget;
  readonly user: UserInfo;
}

export type RestrictedVerb = 'create' | 'update' | 'patch' | 'delete';

const userOf = ({ username, groups }: UserInfo) => ({ name: username, groups });

/** For the options of a write: refuses what this user's node may not do. Nothing for people. */
export function nodeRestriction(
  dependencies: ApiDependencies,
  { descriptor, target, user }: NodeCall,
  verb: RestrictedVerb,
): Pick<WriteOptions, 'admit' | 'admitStored'> {
  const identity = nodeIdentity(userOf(user));
  if (identity.kind === 'notANode') return user.groups.includes(PROBE_GROUP) ? probeRestriction(descriptor) : {};
  const admit: WriteOptions['admit'] = async (next, stored) => {
    const isMirrorPod = target.resource === 'pods' && target.subresource === '' && stored === undefined;
    const nodeUid =
      isMirrorPod && identity.kind === 'node'
        ? (await dependencies.storageOf(nodes).get('', identity.nodeName))?.metadata.uid
        : undefined;
    const verdict = authorizeNode({
      user: userOf(user),
      verb,
      apiGroup: target.group,
      resource: target.resource,
      subresource: target.subresource,
      namespace: target.namespace,
      name: target.name,
      object: next as RestrictedObject | undefined,
      stored: stored as RestrictedObject | undefined,
      nodeUid,
    });
    const name = target.name === '' ? (next?.metadata.name ?? '') : target.name;
    if (verdict.kind === 'allowed') {
      const claim = refusedClaimOf(dependencies, descriptor, next, stored);
      if (claim !== undefined) throw status.forbidden(descriptor, name, claim);
      return;
    }
    throw status.forbidden(descriptor, name, verdict.message);
  };
  // An update that changes nothing.
  return { admit, admitStored: (stored) => admit(stored, stored) };
}

/** Of a machine that sets pod CIDRs on a Node; upstream lets a kubelet set any, and takes their blocks from all others. */
function refusedClaimOf(
  { cidrSets }: ApiDependencies,
  descriptor: ResourceDescriptor,
  next: KubeObject | undefined,
  stored: KubeObject | undefined,
): string | undefined {
  if (descriptor.resource !== nodes.resource || cidrSets.length === 0) return undefined;
  const claimed = (next as KubeNode | undefined)?.spec?.podCIDRs ?? [];
  const before = (stored as KubeNode | undefined)?.spec?.podCIDRs ?? [];
  return claimed.length === 0 || before.length > 0 ? undefined : refusedClaim(cidrSets, claimed);
}

/** The probe has one Lease: authorize sees no name when it makes it. */
const probeRestriction = (descriptor: ResourceDescriptor): Pick<WriteOptions, 'admit'> => ({
  async admit(next) {
    const name = next?.metadata.name ?? '';
    if (name !== PROBE_LEASE) throw status.forbidden(descriptor, name, `the probe may make ${PROBE_LEASE} alone`);
  },
});

/** What belongs to a node by its spec.nodeName is read by that node alone. */
const OF_A_NODE = new Set(['/pods', 'storage.k8s.io/volumeattachments']);

/** A node may read the pods that are bound to it, and its own volumes. */
export function refuseForeign({ descriptor, target, user }: NodeCall, object: KubeObject): void {
  if (!OF_A_NODE.has(`${target.group}/${target.resource}`)) return;
  const nodeName = readsAsNode(user);
  if (nodeName === undefined || textOf(object.spec?.['nodeName']) === nodeName) return;
  const { subresource, namespace, name } = target;
  throw status.accessDenied(
    { user: user.username, verb: 'get', target: descriptor, subresource, namespace, name },
    `no relationship found between node '${nodeName}' and this object`,
  );
}
