import { PRICE_LIST } from './prices.ts';

/** Of the function `watch`: 79 MB are resident before the first event, so 128 would not fit the state of a larger fleet. */
export const WATCH_MEMORY_MEGABYTES = 256;

/** The time of the function, without what the watch reads. */
export const HELD_WATCH_DOLLARS_PER_HOUR =
  (WATCH_MEMORY_MEGABYTES / 1_024) * 3_600 * PRICE_LIST.prices.lambdaGigabyteSecond.dollars;
