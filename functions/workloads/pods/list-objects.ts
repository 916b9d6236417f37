/** All objects of a resource, page by page. */
import { defined } from '../../../shared/defined.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { StoreFault } from '../../../shared/store/item-store.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';

const PAGE_OBJECTS = 500;
const PAGES_MAX = 200;

/**
 * Strongly consistent. `namespace`: '' for every namespace.
 *
 * @throws StoreFault when there are more than one read may return
 */
export async function listObjects(
  { objects }: { readonly objects: ObjectStore },
  resource: string,
  namespace: string,
): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  let continueAfter: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await objects.list({ resource, namespace, limit: PAGE_OBJECTS, ...defined({ continueAfter }) });
    found.push(...page.objects);
    if (page.next === undefined) return found;
    continueAfter = page.next;
  }
  throw new StoreFault('too-large', `there are more ${resource} than one read may return`, { retryable: false });
}
