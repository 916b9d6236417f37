/**
 * The event an HTTP API sends to a function: payload format 2.0. What the format's documentation leaves open follows
 * what the service is seen to do: `rawPath` comes decoded (and ends at a decoded `?`), `rawQueryString` does not.
 * Source: API Gateway Developer Guide, "Create AWS Lambda proxy integrations for HTTP APIs".
 */
export interface GatewayRequest {
  readonly method: string;
  /** Request target as sent: path and query. */
  readonly target: string;
  /** Names and values in the order sent, names in any case: `[name, value, name, value …]`. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly sourceIp: string;
  /** `HTTP/1.1` or `HTTP/2.0`. */
  readonly protocol: string;
}

export interface GatewayContext {
  readonly routeKey: string;
  readonly pathParameters?: Readonly<Record<string, string>>;
  /** Headers that the integration sets, by names in lower case. */
  readonly setHeaders?: Readonly<Record<string, string>>;
  readonly requestId: string;
  readonly accountId: string;
  readonly apiId: string;
  readonly domainName: string;
  readonly nowMs: number;
  /** Function URLs leave the path as it was sent. */
  readonly pathEncoded?: boolean;
}

export interface GatewayEvent {
  readonly version: '2.0';
  readonly routeKey: string;
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly cookies?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly queryStringParameters?: Readonly<Record<string, string>>;
  readonly pathParameters?: Readonly<Record<string, string>>;
  readonly requestContext: Readonly<Record<string, unknown>>;
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** Headers of one connection, which the gateway ends. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade']);

export function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const mark = target.indexOf('?');
  const encoded = mark === -1 ? target : target.slice(0, mark);
  const query = mark === -1 ? '' : target.slice(mark + 1);
  const path = decodePath(encoded);
  const cut = path.indexOf('?');
  return { path: cut === -1 ? path : path.slice(0, cut), query };
}

/** A malformed escape stays unchanged. */
function decodePath(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

export function gatewayEvent(request: GatewayRequest, context: GatewayContext): GatewayEvent {
  const { path: decodedPath, query } = splitTarget(request.target);
  const path = context.pathEncoded === true ? (request.target.split('?')[0] ?? '') : decodedPath;
  const { headers, cookies } = collectHeaders(request.rawHeaders);
  headers['x-forwarded-for'] = [headers['x-forwarded-for'], request.sourceIp].filter(Boolean).join(', ');
  headers['x-forwarded-proto'] = 'https';
  headers['x-forwarded-port'] = context.domainName.split(':')[1] ?? '443';
  headers['host'] ??= context.domainName;
  Object.assign(headers, context.setHeaders);
  const parameters = queryParameters(query);
  const isText = request.body.length === 0 || isTextual(headers['content-type'] ?? '');
  return {
    version: '2.0',
    routeKey: context.routeKey,
    rawPath: path,
    rawQueryString: query,
    ...(cookies.length > 0 ? { cookies } : {}),
    headers,
    ...(Object.keys(parameters).length > 0 ? { queryStringParameters: parameters } : {}),
    requestContext: {
      accountId: context.accountId,
      apiId: context.apiId,
      domainName: context.domainName,
      domainPrefix: context.domainName.split('.')[0],
      http: {
        method: request.method,
        path,
        protocol: request.protocol,
        sourceIp: request.sourceIp,
        userAgent: headers['user-agent'] ?? '',
      },
      requestId: context.requestId,
      routeKey: context.routeKey,
      stage: '$default',
      time: commonLogTime(context.nowMs),
      timeEpoch: context.nowMs,
    },
    ...(context.pathParameters === undefined ? {} : { pathParameters: context.pathParameters }),
    ...(request.body.length === 0 ? {} : { body: request.body.toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: !isText,
  };
}

/** Text is passed as text; every other type, forms and protobuf included, in base64. */
function isTextual(contentType: string): boolean {
  const type = contentType.split(';')[0]!.trim().toLowerCase();
  return type === '' || type.startsWith('text/') || /^application\/(json|xml|javascript)$|\+(json|xml)$/.test(type);
}

function collectHeaders(rawHeaders: readonly string[]): { headers: Record<string, string>; cookies: string[] } {
  const headers: Record<string, string> = {};
  const cookies: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    const value = rawHeaders[index + 1]!;
    if (name === 'cookie') cookies.push(...value.split('; '));
    else if (name === ':authority') headers['host'] = value;
    else if (name.startsWith(':') || HOP_BY_HOP.has(name)) continue;
    else headers[name] = name in headers ? `${headers[name]},${value}` : value;
  }
  return { headers, cookies };
}

/** Decoded; values of a repeated name are joined with commas. */
function queryParameters(query: string): Record<string, string> {
  const parameters: Record<string, string> = {};
  if (query === '') return parameters;
  for (const [name, value] of new URLSearchParams(query)) {
    parameters[name] = Object.hasOwn(parameters, name) ? `${parameters[name]},${value}` : value;
  }
  return parameters;
}

/** `20/Nov/2026:17:44:05 +0000`. */
function commonLogTime(nowMs: number): string {
  const [date = '', clock = ''] = new Date(nowMs).toISOString().split('T');
  const [year, month, day] = date.split('-');
  return `${day}/${MONTHS[Number(month) - 1]}/${year}:${clock.slice(0, 8)} +0000`;
}
