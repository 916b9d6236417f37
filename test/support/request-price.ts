/** List prices of a request to function api without its units of the tables. Dollars. */
import { PRICES } from '../../shared/cost/prices.ts';

/** As docs/cost.md estimates Lambda time: the wait for tables, and 1 ms of CPU on 512 MB. */
const REQUEST_SECONDS = (10 + 1 / (512 / 1_769)) / 1_000;
const REQUEST_GIGABYTES = 0.5;

/** Through the URL of the function (policy field `apiUrl`). */
export const BY_URL = PRICES.lambdaRequest + REQUEST_SECONDS * REQUEST_GIGABYTES * PRICES.lambdaGigabyteSecond;
export const BY_HTTP_API = BY_URL + PRICES.httpApiRequest;
