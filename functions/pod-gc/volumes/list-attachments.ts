import { defined } from '../../../shared/defined.ts';
import type { KubeVolumeAttachment } from '../../../shared/kinds/types.ts';
import { StoreFault } from '../../../shared/store/item-store.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';

const PAGE_OBJECTS = 1_000;
const PAGES_MAX = 100;

/** All VolumeAttachments. One read unit per 4 KB, about six of them. */
export async function listAttachments(objects: ObjectStore): Promise<readonly KubeVolumeAttachment[]> {
  const all: KubeVolumeAttachment[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await objects.list({
      resource: 'volumeattachments',
      limit: PAGE_OBJECTS,
      ...defined({ continueAfter: after }),
    });
    all.push(...page.objects);
    if (page.next === undefined) return all;
    after = page.next;
  }
  throw new StoreFault('too-large', 'the VolumeAttachments exceed the page limit of one read', { retryable: false });
}
