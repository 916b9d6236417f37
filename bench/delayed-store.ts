import type { ItemStore } from '../shared/store/item-store.ts';

const REQUEST_MS = 5;

/** A store in which each request but a transaction needs time, for benchmarks on virtual time. */
export const delayed = (items: ItemStore, time: { sleep(milliseconds: number): Promise<unknown> }): ItemStore => ({
  ...items,
  async get(...call) {
    await time.sleep(REQUEST_MS);
    return items.get(...call);
  },
  async getMany(...call) {
    await time.sleep(REQUEST_MS);
    return items.getMany(...call);
  },
  async query(...call) {
    await time.sleep(REQUEST_MS);
    return items.query(...call);
  },
  async scan(...call) {
    await time.sleep(REQUEST_MS);
    return items.scan(...call);
  },
  async write(...call) {
    await time.sleep(REQUEST_MS);
    return items.write(...call);
  },
});
