/** Claims that controllers create, with the defaults and the quotas of a POST. */

import type { AdmissionWait, Creator } from '../../../shared/admission/created-object.ts';
import { defaultClass, wantsDefaultClass } from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { preparePersistentVolumeClaim } from '../../../shared/kinds/persistentvolumes/defaults.ts';
import { withLocalClass } from '../../../shared/kinds/storageclasses/local-class.ts';
import type { KubeObject, KubePersistentVolumeClaim, ObjectRef } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { permitted } from '../new-objects.ts';
import { isCommitted, refOfObject } from '../owner.ts';

export type ClaimCreation =
  | { readonly kind: 'exists'; readonly claim: KubePersistentVolumeClaim }
  | { readonly kind: 'created' }
  | { readonly kind: 'refused'; readonly message: string; readonly retryMs: number }
  | AdmissionWait
  /** Another object was charged to the same quota, or the claim was created meanwhile. */
  | { readonly kind: 'overtaken' };

type ClaimSpec = NonNullable<KubePersistentVolumeClaim['spec']>;
type Dependencies = Pick<
  WorkloadDependencies,
  'objects' | 'random' | 'clock' | 'namespacePolicies' | 'storageClasses' | 'admitObjects'
>;

/** Creates the claim unless one of its name exists. A claim without a class gets the default one, if there is one. */
export async function ensureClaim(
  dependencies: Dependencies,
  creator: Creator,
  given: KubePersistentVolumeClaim,
): Promise<ClaimCreation> {
  const { objects, random, clock } = dependencies;
  const ref: ObjectRef = refOfObject('persistentvolumeclaims', given);
  const found: KubePersistentVolumeClaim | undefined = await objects.get(ref);
  if (found !== undefined) return { kind: 'exists', claim: found };
  const nowMs = clock.nowMs();
  const created = { uid: random.uuid(), creationTimestamp: formatTime(nowMs) };
  const body = { ...given, metadata: { ...given.metadata, ...created }, spec: await specOf(dependencies, given) };
  const prepare = (claim: KubeObject) => preparePersistentVolumeClaim.prepareForCreate(claim, { nowMs });
  const of = { group: '', resource: ref.resource };
  const permission = await permitted(dependencies, { ...of, creator, given: body, prepare });
  if (permission.kind !== 'permitted') return permission;
  const { object, quotas } = permission;
  const writes: readonly ObjectWrite[] = [{ kind: 'create', ref, object }, ...quotas];
  return { kind: isCommitted(await objects.commit({ writes })) ? 'created' : 'overtaken' };
}

async function specOf({ storageClasses }: Dependencies, claim: KubePersistentVolumeClaim): Promise<ClaimSpec> {
  const { spec = {} } = claim;
  if (!wantsDefaultClass(claim)) return spec;
  const storage = defaultClass(withLocalClass(await storageClasses.read()));
  return storage === undefined ? spec : { ...spec, storageClassName: storage.metadata.name ?? '' };
}
