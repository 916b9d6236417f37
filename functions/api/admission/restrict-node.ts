/**
 * NodeRestriction as an admission check: calls the rules of shared/access/node-restriction.ts with the stored
 * object and the object to store. The heartbeat probe is not a node; it may write only its own Lease.
 */

import { nodeIdentity, readsAsNode } from '../../../shared/access/authorize.ts';
import { authorizeNode, type RestrictedObject } from '../../../shared/access/node-restriction.ts';
import { PROBE_GROUP, PROBE_LEASE } from '../../../shared/access/probe-identity.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import { refusedClaim } from '../../../shared/fleet/cidrs/cluster-cidrs.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { persistentvolumes } from '../../../shared/kinds/persistentvolumes/serve.ts';
import { nodes } from '../../../shared/kinds/registry.ts';
import type { KubeNode, KubeObject, KubePersistentVolume } from '../../../shared/kinds/types.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { offeredVolume } from '../agents/node-volumes.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { WriteOptions } from '../verbs/write-options.ts';

interface NodeCall {
  readonly descriptor: ResourceDescriptor;
  readonly target: ResourceTarget;
  readonly user: UserInfo;
}

export type RestrictedVerb = 'create' | 'update' | 'patch' | 'delete';

const userOf = ({ username, groups }: UserInfo) => ({ name: username, groups });

/** The checks for writes of this user. None for people. */
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
    const { claimRef } = (next as KubePersistentVolume | undefined)?.spec ?? {};
    const isNewVolume = descriptor === persistentvolumes && stored === undefined && claimRef !== undefined;
    const { namespace: ofNamespace = '', name: claimName = '' } = claimRef ?? {};
    const offered =
      isNewVolume && identity.kind === 'node'
        ? await offeredVolume(dependencies, identity.nodeName, { namespace: ofNamespace, name: claimName })
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
      offered,
    });
    const name = target.name === '' ? (next?.metadata.name ?? '') : target.name;
    if (verdict.kind === 'nodeNotFound') throw status.notFound(nodes, verdict.nodeName);
    if (verdict.kind === 'allowed') {
      const claim = refusedClaimOf(dependencies, descriptor, next, stored);
      if (claim !== undefined) throw status.forbidden(descriptor, name, claim);
      return;
    }
    throw status.forbidden(descriptor, name, verdict.message);
  };
  // The next object is not known yet, so the stored object is checked as an update without changes.
  return { admit, admitStored: (stored) => admit(stored, stored) };
}

/** Why a node may not set these pod CIDRs. Upstream accepts any, and then excludes their blocks for all other nodes. */
function refusedClaimOf(
  { cidrSets }: ApiDependencies,
  descriptor: ResourceDescriptor,
  next: KubeNode | undefined,
  stored: KubeNode | undefined,
): string | undefined {
  if (descriptor.resource !== nodes.resource || cidrSets.length === 0) return undefined;
  const claimed = next?.spec?.podCIDRs ?? [];
  const before = stored?.spec?.podCIDRs ?? [];
  return claimed.length === 0 || before.length > 0 ? undefined : refusedClaim(cidrSets, claimed);
}

/** The probe may create one Lease. The path of a creation has no name, so authorize cannot check it. */
const probeRestriction = (descriptor: ResourceDescriptor): Pick<WriteOptions, 'admit'> => ({
  async admit(next) {
    const name = next?.metadata.name ?? '';
    if (name !== PROBE_LEASE)
      throw status.forbidden(descriptor, name, `the probe may create only the Lease ${PROBE_LEASE}`);
  },
});

/** A node may read objects of these resources only if its name is in spec.nodeName. */
const NODE_NAME_RESOURCES = new Set(['/pods', 'storage.k8s.io/volumeattachments']);

/** @throws StatusError 403 when a node reads a pod or a volume attachment of another node */
export function refuseForeign({ descriptor, target, user }: NodeCall, object: KubeObject): void {
  if (!NODE_NAME_RESOURCES.has(`${target.group}/${target.resource}`)) return;
  const nodeName = readsAsNode(user);
  if (nodeName === undefined || object.spec?.nodeName === nodeName) return;
  const { subresource, namespace, name } = target;
  throw status.accessDenied(
    { user: user.username, verb: 'get', target: descriptor, subresource, namespace, name },
    `no relationship found between node '${nodeName}' and this object`,
  );
}
