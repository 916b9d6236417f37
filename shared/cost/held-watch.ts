import { PRICE_LIST } from './prices.ts';

/** The memory of the function `watch`. It has 79 MB before the first event, so 128 would not hold a larger fleet. */
export const WATCH_MEMORY_MEGABYTES = 256;

/** The time of the function, without what the watch reads. */
export const HELD_WATCH_DOLLARS_PER_HOUR =
  (WATCH_MEMORY_MEGABYTES / 1_024) * 3_600 * PRICE_LIST.prices.lambdaGigabyteSecond.dollars;
