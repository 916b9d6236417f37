import { Agent, request } from 'node:http';

/**
 * DynamoDB's wire protocol, JSON 1.0 over HTTP, for the few calls the local mode makes itself: tables and streams.
 * Plain JSON on purpose: stream records reach the functions exactly as the engine wrote them, and a poll costs little.
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

export function createEngineClient(endpoint: string): EngineClient {
  const url = new URL(endpoint);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });

  function call(operation: string, input: unknown): Promise<Record<string, unknown>> {
    const body = Buffer.from(JSON.stringify(input));
    return new Promise((resolve, reject) => {
      const unreachable = (cause: Error) => reject(new EngineError('Unreachable', cause.message, { cause }));
      const sent = request(
        url,
        {
          method: 'POST',
          agent,
          timeout: CALL_TIMEOUT_MS,
          headers: {
            'content-type': 'application/x-amz-json-1.0',
            'content-length': body.length,
            'x-amz-target': operation,
            'x-amz-date': '20260101T000000Z',
            authorization: AUTHORIZATION,
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', unreachable);
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            let answer: Record<string, unknown>;
            try {
              answer = JSON.parse(text) as Record<string, unknown>;
            } catch (cause) {
              reject(new EngineError('Malformed', `${operation} was answered with ${text.slice(0, 100)}`, { cause }));
              return;
            }
            if (response.statusCode === 200) resolve(answer);
            else reject(errorOf(answer, operation));
          });
        },
      );
      sent.on('timeout', () => sent.destroy(new Error(`${operation} took longer than ${CALL_TIMEOUT_MS} ms`)));
      sent.on('error', unreachable);
      sent.end(body);
    });
  }

  return { endpoint, call, close: () => agent.destroy() };
}

function errorOf(answer: Record<string, unknown>, operation: string): EngineError {
  const code =
    String(answer['__type'] ?? 'Unknown')
      .split('#')
      .at(-1) ?? 'Unknown';
  return new EngineError(code, `${operation}: ${String(answer['message'] ?? answer['Message'] ?? '')}`);
}
