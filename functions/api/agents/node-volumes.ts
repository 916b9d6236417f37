/**
 * What an agent requests to learn which volumes it makes and removes. A node may use only the path of its own name.
 *
 *   GET    /apis/nodekeeper.dev/v1alpha1/nodevolumes/<node>        { id, provision: a PersistentVolume without its
 *                                                                  path } or { id, remove: name of a volume }
 *   DELETE /apis/nodekeeper.dev/v1alpha1/nodevolumes/<node>/<id>   it is done
 *
 * The agent creates the offered volume with the path of its directory. It removes a directory and deletes the volume.
 * Both are usual requests. Admission offers the volume again and compares (restrict-node.ts). A row that asks
 * for nothing any more is removed here.
 *
 * Cost: one query, and one read per claim and volume. Agents ask when they start and when a heartbeat's answer says so.
 */
import { authorize } from '../../../shared/access/authorize.ts';
import type { ResourceStorage } from '../../../shared/api/resource-storage.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { classNameOf } from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { localVolume, provisionRefusal } from '../../../shared/kinds/persistentvolumes/local-volume.rule.ts';
import { persistentvolumeclaims, persistentvolumes } from '../../../shared/kinds/persistentvolumes/serve.ts';
import {
  idOf,
  type VolumeWork,
  volumeWorkOf,
  workDone,
  workOf,
} from '../../../shared/kinds/persistentvolumes/volume-work-store.ts';
import { withLocalClass } from '../../../shared/kinds/storageclasses/local-class.ts';
import { storageclasses } from '../../../shared/kinds/storageclasses/serve.ts';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../../../shared/kinds/types.ts';
import { type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { NAME_LENGTH_MAX } from '../../../shared/kubernetes/kubernetes.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import type { NodeLogCall } from '../logs/node-logs.ts';

const API_VERSION = 'nodekeeper.dev/v1alpha1';
/** Of two names with their separator, encoded. */
const ID_CHARACTERS_MAX = 4 * NAME_LENGTH_MAX;

interface Dependencies {
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
}

export type AnswerNodeVolumes = (dependencies: Dependencies, call: NodeLogCall) => Promise<HttpResponse>;

export const answerNodeVolumes =
  (items: ItemStore): AnswerNodeVolumes =>
  async (dependencies, { user, target, request }) => {
    const access = authorize(user, { ...target, verb: 'update', subresource: '' });
    const { namespace, name: nodeName, subresource } = target;
    if (!access.allowed) {
      const denied = { user: user.username, verb: 'update', target, subresource, namespace, name: nodeName };
      throw status.accessDenied(denied, access.reason);
    }
    if (nodeName === '' || namespace !== '' || nodeName.length > NAME_LENGTH_MAX) throw status.unknownPath();
    if (request.method === 'GET' && subresource === '') {
      const offers = await offersFor(dependencies, items, nodeName);
      return json(200, { kind: 'NodeVolumeWorkList', apiVersion: API_VERSION, items: offers });
    }
    if (request.method !== 'DELETE' || subresource === '') throw status.methodNotAllowedHere();
    const work = subresource.length > ID_CHARACTERS_MAX ? undefined : workOf(decoded(subresource));
    if (work === undefined) throw status.badRequest(`${JSON.stringify(subresource)} is no id of a volume's work`);
    await workDone(items, nodeName, work);
    return json(200, { kind: 'NodeVolumeWork', apiVersion: API_VERSION });
  };

const encoded = (id: string): string => Buffer.from(id).toString('base64url');
const decoded = (id: string): string => Buffer.from(id, 'base64url').toString();

async function offersFor(dependencies: Dependencies, items: ItemStore, nodeName: string): Promise<readonly object[]> {
  const offers: object[] = [];
  for (const work of await volumeWorkOf(items, nodeName)) {
    const offer = await offerFor(dependencies, nodeName, work);
    if (offer === undefined) await workDone(items, nodeName, work);
    else offers.push({ id: encoded(idOf(work)), ...offer });
  }
  return offers;
}

/** Undefined: nothing is asked for any more. */
async function offerFor(dependencies: Dependencies, nodeName: string, work: VolumeWork): Promise<object | undefined> {
  if (work.kind === 'provision') {
    const provision = await offeredVolume(dependencies, nodeName, work);
    return typeof provision === 'string' ? undefined : { provision };
  }
  const stored: KubePersistentVolume | undefined = await dependencies.storageOf(persistentvolumes).get('', work.name);
  // Bound again, which a person may have done.
  return stored?.status?.phase === 'Bound' ? undefined : { remove: work.name };
}

/** The volume that the node may create for a claim, without its path; or why there is none. */
export async function offeredVolume(
  { storageOf }: Dependencies,
  nodeName: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<KubePersistentVolume | string> {
  const claim: KubePersistentVolumeClaim | undefined = await storageOf(persistentvolumeclaims).get(namespace, name);
  const className = claim === undefined ? '' : classNameOf(claim);
  const stored: KubeStorageClass | undefined =
    className === '' ? undefined : await storageOf(storageclasses).get('', className);
  const storage = withLocalClass(stored === undefined ? [] : [stored]).find(
    ({ metadata }) => metadata.name === className,
  );
  const refusal = provisionRefusal(nodeName, claim, storage);
  return refusal ?? localVolume(nodeName, claim!, storage!, '');
}
