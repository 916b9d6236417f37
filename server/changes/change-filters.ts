/**
 * The filters of the event source mappings as functions: which change a function receives. A test compares them with
 * the manifests.
 */
import { REMOVED_KINDS } from '../../functions/workloads/manifest.ts';
import { DIGEST } from '../../shared/fleet/nodes/health.ts';
import { objectPartition, RETRY_PREFIX } from '../../shared/store/layout.ts';
import { OBJECT } from '../../shared/store/object-record.ts';
import type { ItemChangeRecord } from '../../shared/ticks/item-change.ts';

const OBJECT_PREFIXES = [objectPartition('nodes'), objectPartition('pods')];
/** Every change of a Node or Pod, and every started retry of a parked row. */
export const passesObjectFilter = ({ type, key }: Pick<ItemChangeRecord, 'type' | 'key'>): boolean =>
  OBJECT_PREFIXES.some((prefix) => key.pk.startsWith(prefix)) || (key.pk.startsWith(RETRY_PREFIX) && type !== 'REMOVE');
/**
 * A change of a Ready node with NoExecute taints, of one that is marked Unknown, or of one with a planned silence that
 * stands.
 */
export const passesHealthFilter = ({ newImage: row }: Pick<ItemChangeRecord, 'newImage'>): boolean =>
  row !== undefined &&
  ((DIGEST.ready.of(row) === 'True' && row[DIGEST.noExecute.name] !== undefined) ||
    (DIGEST.ready.of(row) === 'Unknown' && DIGEST.markedAtMs.of(row) !== undefined) ||
    (DIGEST.suspect.of(row) && row[DIGEST.plannedUntilMs.name] !== undefined));

const REMOVED: ReadonlySet<unknown> = new Set(REMOVED_KINDS);
/** A change of what workload controllers read, and the removal of an object that others may belong to. */
export const passesWorkloadFilter = ({
  type,
  oldImage,
  newImage,
}: Pick<ItemChangeRecord, 'type' | 'oldImage' | 'newImage'>): boolean =>
  type === 'REMOVE'
    ? oldImage !== undefined && (REMOVED.has(OBJECT.kind.of(oldImage)) || OBJECT.isCustom.of(oldImage))
    : newImage !== undefined && OBJECT.changesWorkloads.of(newImage);

const SIGNING_REQUESTS = objectPartition('certificatesigningrequests');
/** Every change of a CertificateSigningRequest but its removal. Only this home signs. */
export const passesSigningFilter = ({ type, key }: Pick<ItemChangeRecord, 'type' | 'key'>): boolean =>
  type !== 'REMOVE' && key.pk.startsWith(SIGNING_REQUESTS);
