import { loopbackClient } from '../http/loopback-client.ts';

/**
 * DynamoDB's wire protocol, JSON 1.0 over HTTP, for the few calls the local mode makes itself: tables and streams. Plain
 * JSON on purpose: stream records reach the functions exactly as the engine wrote them, and a poll costs little.
 */
export interface EngineClient {
  readonly endpoint: string;
  /**
   * @param operation `DynamoDB_20120810.CreateTable`, `DynamoDBStreams_20120810.GetRecords` …
   * @throws EngineError for an answer that is not a success, with DynamoDB's name for it
   */
  call(operation: string, input: unknown): Promise<Record<string, unknown>>;
  close(): void;
}

export class EngineError extends Error {
  override readonly name = 'EngineError';
  /** `ResourceNotFoundException` …, or `Unreachable`. */
  readonly code: string;
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(`${code}: ${message}`, options);
    this.code = code;
  }
}

const CALL_TIMEOUT_MS = 10_000;
/** Engines on one machine read the key id at most; nothing is signed. */
const AUTHORIZATION =
  'AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0';

const HEADERS = [
  ['content-type', 'application/x-amz-json-1.0'],
  ['x-amz-date', '20260101T000000Z'],
  ['authorization', AUTHORIZATION],
] as const;

export function createEngineClient(endpoint: string): EngineClient {
  const url = new URL(endpoint);
  const client = loopbackClient(url, CALL_TIMEOUT_MS);

  async function call(operation: string, input: unknown): Promise<Record<string, unknown>> {
    const headers = [['x-amz-target', operation], ...HEADERS] as const;
    const response = await client.post(url.pathname, headers, JSON.stringify(input)).catch((cause: Error) => {
      throw new EngineError('Unreachable', cause.message, { cause });
    });
    const text = response.body.toString('utf8');
    let answer: Record<string, unknown>;
    try {
      answer = JSON.parse(text) as Record<string, unknown>;
    } catch (cause) {
      throw new EngineError('Malformed', `${operation} was answered with ${text.slice(0, 100)}`, { cause });
    }
    if (!response.status.startsWith('200')) throw errorOf(answer, operation);
    return answer;
  }

  return { endpoint, call, close: () => client.close() };
}

function errorOf(answer: Record<string, unknown>, operation: string): EngineError {
  const code =
    String(answer['__type'] ?? 'Unknown')
      .split('#')
      .at(-1) ?? 'Unknown';
  return new EngineError(code, `${operation}: ${String(answer['message'] ?? answer['Message'] ?? '')}`);
}
