/**
 * List prices of AWS, dated, in US dollars and before any free tier: one table for `npm run cost`, the benchmarks and
 * the running functions. Change them here and nowhere else, and the date with them.
 */
export interface Price {
  /** For one of `unit`. */
  readonly dollars: number;
  readonly unit: string;
  /** The page with the price, and the month of the copy that was read. */
  readonly source: string;
}

export type PriceName =
  | 'httpApiRequest'
  | 'httpApiRequestAbove300Million'
  | 'lambdaRequest'
  | 'lambdaGigabyteSecond'
  | 'writeUnit'
  | 'readUnit'
  | 'writeCapacityMonth'
  | 'readCapacityMonth'
  | 'tableGigabyteMonth'
  | 'recoveryGigabyteMonth'
  | 'sqsRequest'
  | 'schedulerInvocation'
  | 'eventPublished'
  | 'logGigabyte'
  | 'metricMonth'
  | 'alarmMetricMonth'
  | 'compositeAlarmMonth'
  | 'dashboardMonth'
  | 'keyMonth'
  | 'dataOutGigabyte';

export interface PriceList {
  /** When the sources were read, YYYY-MM-DD. */
  readonly readOn: string;
  readonly region: string;
  readonly prices: Readonly<Record<PriceName, Price>>;
}

const MILLION = 1e6;
const HOURS_A_MONTH = 730;
/** @tools npm run cost computes the bill with it */
export const SECONDS_A_MONTH = HOURS_A_MONTH * 3_600;
export const SECONDS_PER_DAY = 86_400;

export const PRICE_LIST: PriceList = {
  readOn: '2026-11-20',
  region: 'us-east-1',
  prices: {
    httpApiRequest: {
      dollars: 1 / MILLION,
      unit: 'request, of the first 300 million per month',
      source: 'Amazon API Gateway pricing, HTTP APIs (2024-07)',
    },
    httpApiRequestAbove300Million: {
      dollars: 0.9 / MILLION,
      unit: 'request above 300 million per month',
      source: 'Amazon API Gateway pricing, HTTP APIs (2024-07)',
    },
    lambdaRequest: { dollars: 0.2 / MILLION, unit: 'invocation', source: 'AWS Lambda pricing (2024-07)' },
    lambdaGigabyteSecond: { dollars: 0.0000133334, unit: 'GB-second, arm64', source: 'AWS Lambda pricing (2024-07)' },
    writeUnit: { dollars: 0.625 / MILLION, unit: 'write request unit', source: 'Amazon DynamoDB pricing (2024-11)' },
    readUnit: { dollars: 0.125 / MILLION, unit: 'read request unit', source: 'Amazon DynamoDB pricing (2024-11)' },
    writeCapacityMonth: {
      dollars: 0.00065 * HOURS_A_MONTH,
      unit: 'write capacity unit and month',
      source: 'Amazon DynamoDB pricing, provisioned (2024-11)',
    },
    readCapacityMonth: {
      dollars: 0.00013 * HOURS_A_MONTH,
      unit: 'read capacity unit and month',
      source: 'Amazon DynamoDB pricing, provisioned (2024-11)',
    },
    tableGigabyteMonth: { dollars: 0.25, unit: 'GB and month', source: 'Amazon DynamoDB pricing (2024-11)' },
    recoveryGigabyteMonth: {
      dollars: 0.2,
      unit: 'GB and month',
      source: 'Amazon DynamoDB pricing, point-in-time recovery (2024-11)',
    },
    sqsRequest: { dollars: 0.4 / MILLION, unit: 'request', source: 'Amazon SQS pricing, standard queues (2024-07)' },
    schedulerInvocation: { dollars: 1 / MILLION, unit: 'invocation', source: 'Amazon EventBridge pricing, Scheduler' },
    eventPublished: {
      dollars: 1 / MILLION,
      unit: 'custom event published, 64 KB each',
      source: 'Amazon EventBridge pricing, custom events',
    },
    logGigabyte: { dollars: 0.5, unit: 'GB ingested', source: 'Amazon CloudWatch pricing, logs (2024-07)' },
    metricMonth: {
      dollars: 0.3,
      unit: 'metric and month, prorated by the hours with data',
      source:
        'Amazon CloudWatch pricing, first 10,000; "prorated by the hour and metered only when you send" (2024-07)',
    },
    alarmMetricMonth: {
      dollars: 0.1,
      unit: 'metric of an alarm and month',
      source: 'Amazon CloudWatch pricing, standard resolution (2024-07)',
    },
    compositeAlarmMonth: {
      dollars: 0.5,
      unit: 'composite alarm and month',
      source: 'Amazon CloudWatch pricing; from memory, not read again',
    },
    dashboardMonth: { dollars: 3, unit: 'dashboard and month', source: 'Amazon CloudWatch pricing (2024-07)' },
    keyMonth: { dollars: 1, unit: 'key and month', source: 'AWS KMS pricing (2024-07)' },
    dataOutGigabyte: {
      dollars: 0.09,
      unit: 'GB to the internet',
      source: 'Amazon EC2 pricing, data transfer, first 10 TB; from memory, not read again',
    },
  },
};

export type Dollars = Readonly<Record<PriceName, number>>;

export const dollarsOf = ({ prices }: PriceList): Dollars =>
  Object.fromEntries(Object.entries(prices).map(([name, { dollars }]) => [name, dollars])) as Dollars;

export const PRICES: Dollars = dollarsOf(PRICE_LIST);

export type PriceListOutcome =
  | { readonly kind: 'prices'; readonly list: PriceList }
  /** Every fault, each beginning with the field it is about. */
  | { readonly kind: 'invalid'; readonly faults: readonly string[] };

/**
 * A list of one's own, such as that of another region: it must name every price and no other.
 *
 * @tools npm run cost reads a price list with it
 */
export function parsePriceList(value: unknown): PriceListOutcome {
  if (!isRecord(value)) return { kind: 'invalid', faults: ['(the list): must be an object'] };
  const faults: string[] = [];
  const { readOn, region, prices } = value;
  if (typeof readOn !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(readOn)) faults.push('readOn: must be YYYY-MM-DD');
  if (typeof region !== 'string' || region === '') faults.push('region: must name a region');
  if (!isRecord(prices)) faults.push('prices: must be an object');
  else {
    for (const name of Object.keys(PRICE_LIST.prices)) faults.push(...priceFaults(name, prices[name]));
    for (const name of Object.keys(prices)) {
      if (!Object.hasOwn(PRICE_LIST.prices, name)) faults.push(`prices.${name}: is no price that is counted with`);
    }
  }
  for (const name of Object.keys(value)) {
    if (!['readOn', 'region', 'prices'].includes(name)) faults.push(`${name}: is no field of a price list`);
  }
  return faults.length > 0 ? { kind: 'invalid', faults } : { kind: 'prices', list: value as unknown as PriceList };
}

function priceFaults(name: string, price: unknown): string[] {
  if (!isRecord(price)) return [`prices.${name}: is missing`];
  const { dollars, unit, source } = price;
  return [
    ...(typeof dollars === 'number' && Number.isFinite(dollars) && dollars >= 0
      ? []
      : [`prices.${name}.dollars: must be a number, 0 or more`]),
    ...(typeof unit === 'string' && unit !== '' ? [] : [`prices.${name}.unit: must say for what`]),
    ...(typeof source === 'string' && source !== '' ? [] : [`prices.${name}.source: must say where it stands`]),
  ];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
