/**
 * List prices, US East (N. Virginia), US dollars, before any free tier. Read on 2026-11-20 from dated copies of the price
 * lists named beside each; change them here and nowhere else.
 */
export const PRICES = {
  /** HTTP API requests, first 300 million a month (2024-07). */
  httpApiRequest: 1.0 / 1e6,
  /** Lambda requests (2024-07). */
  lambdaRequest: 0.2 / 1e6,
  /** Lambda on arm64, a GB-second (2024-07). */
  lambdaGigabyteSecond: 0.0000133334,
  /** DynamoDB on demand (2024-11). */
  writeUnit: 0.625 / 1e6,
  readUnit: 0.125 / 1e6,
  /** SQS standard, a request (2024-07). */
  sqsRequest: 0.4 / 1e6,
  /** EventBridge Scheduler, an invocation (14 million a month are free). */
  schedulerInvocation: 1.0 / 1e6,
  /** Secrets Manager, a secret and month. */
  secretMonth: 0.4,
} as const;

export const SECONDS_A_MONTH = 730 * 3_600;
