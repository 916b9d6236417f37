/** POST on a collection: one new object of any kind. */
import { defined } from '../../../shared/defined.ts';
import type { PrepareContext, ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { generateName } from '../../../shared/kubernetes/validate-metadata.ts';
import { admitCreation, refuseOutsideLimits } from '../admission/admit-creation.ts';
import { chargedQuotas } from '../admission/admit-write.ts';
import type { ApiDependencies } from '../dependencies.ts';
import {
  pauseBefore,
  prepareContext,
  refuseInvalid,
  resourceVersionOf,
  WRITE_ATTEMPTS_MAX,
  type WriteOptions,
  type WrittenObject,
  withManagedFields,
  withNamespaceOf,
  withTypeOf,
} from './write-options.ts';

/** Names tried for one `generateName` before the response is 409. */
const GENERATED_NAME_ATTEMPTS_MAX = 8;

/** @throws StatusError 400, 403 or 422 when the body is refused; 409 when the name is in use */
export async function createObject(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  body: KubeObject,
  options: WriteOptions,
): Promise<WrittenObject> {
  const typed = withNamespaceOf(descriptor, target, withTypeOf(descriptor, body));
  const admitted = await admitCreation(dependencies, descriptor, typed);
  const context = { ...prepareContext(dependencies, options), ...admitted };
  const prefix = typed.metadata.generateName ?? '';
  const isNamed = (typed.metadata.name ?? '') !== '';
  const attempts = isNamed || prefix === '' ? 1 : GENERATED_NAME_ATTEMPTS_MAX;
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const prepared = await preparedForCreate(
      dependencies,
      descriptor,
      { typed, group: target.group },
      context,
      options,
    );
    refuseOutsideLimits(descriptor, prepared, admitted);
    await options.admit?.(prepared, undefined);
    // After all other checks, and not in a dry run: upstream's store refuses it.
    if (resourceVersionOf(typed) !== '' && !options.dryRun) {
      throw status.badRequest('resourceVersion should not be set on objects to be created');
    }
    const complete = (await options.complete?.(prepared)) ?? prepared;
    const created = await storeNew(dependencies, descriptor, target, complete, options);
    if (created !== undefined) return { object: created, created: true };
    if (isNamed) throw status.alreadyExists(descriptor, prepared.metadata.name ?? '');
  }
  throw status.generateNameConflict(descriptor, prefix);
}

/** The object to store: server-set metadata, defaults, managedFields. A missing name is made from generateName. */
async function preparedForCreate(
  { random }: ApiDependencies,
  descriptor: ResourceDescriptor,
  { typed, group }: { readonly typed: KubeObject; readonly group: string },
  context: PrepareContext,
  { nowMs, user, track, mutate }: WriteOptions,
): Promise<KubeObject> {
  const metadata = { ...typed.metadata };
  const prefix = metadata.generateName ?? '';
  if ((metadata.name ?? '') === '' && prefix !== '') metadata.name = generateName(prefix, random.fraction);
  metadata.uid = random.uuid();
  metadata.creationTimestamp = formatTime(nowMs);
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
  delete metadata.resourceVersion;
  const named = { ...typed, metadata };
  const withDefaults = descriptor.prepareForCreate(named, context);
  const mutated = (await mutate?.(withDefaults, undefined)) ?? withDefaults;
  const complete = mutated === withDefaults ? withDefaults : descriptor.prepareForCreate(mutated, context);
  // As upstream, before admission: what it adds has no owner.
  const sent = track && descriptor.prepareForCreate(named, { nowMs, defaultsOnly: true, ...defined({ user }) });
  const prepared = sent ? withManagedFields(complete, track(sent, undefined).metadata.managedFields) : complete;
  const causes = descriptor.validate(prepared, { operation: 'create', subresource: '', group });
  refuseInvalid(descriptor, prepared.metadata.name ?? '', causes);
  return prepared;
}

/** Returns undefined when the name is in use. @throws StatusError 403 when a quota is exceeded */
async function storeNew(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  { namespace }: ResourceTarget,
  prepared: KubeObject,
  { dryRun, nowMs }: WriteOptions,
): Promise<KubeObject | undefined> {
  const storage = dependencies.storageOf(descriptor);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const quotas = await chargedQuotas(dependencies, descriptor, { object: prepared, old: undefined, nowMs });
    if (dryRun) {
      storage.refuseCreation?.(prepared.metadata.name ?? '');
      const existing = await storage.get(namespace, prepared.metadata.name ?? '');
      return existing === undefined ? prepared : undefined;
    }
    const result = await storage.create(prepared, quotas);
    if (result.kind === 'written') return result.object;
    // Another object was charged to the same quota: its use is read again.
    if (result.ofAlong !== true) return undefined;
  }
  throw status.serverTimeout(descriptor, 'create', 1);
}
