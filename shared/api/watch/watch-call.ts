/** GET with `watch`: reads the options, and lets the process deliver the changes in its way. */

import type { HttpRequest, HttpResponse } from '../../kubernetes/http.ts';
import { checkWatchOptions, isAskedFor, wholeNumberOf } from '../../kubernetes/request.ts';
import { type Call, type ReadDependencies, selectorsOf } from '../call.ts';

export async function watch(dependencies: ReadDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const { query } = request;
  checkWatchOptions(query);
  const timeoutSeconds = wholeNumberOf(query, 'timeoutSeconds');
  return dependencies.answerWatch(
    {
      storage: dependencies.storageOf(descriptor),
      changes: dependencies.changes,
      clock: dependencies.clock,
      pause: dependencies.pause,
    },
    {
      descriptor,
      namespace: target.namespace,
      ...selectorsOf(descriptor, query),
      resourceVersion: query.get('resourceVersion') ?? '',
      shape: call.shape,
      timeoutSeconds,
      bookmarks: isAskedFor(query, 'allowWatchBookmarks') || isJavaScriptClient(request),
      sendInitialEvents: isAskedFor(query, 'sendInitialEvents'),
    },
    call,
  );
}

/** Its watches cannot ask for bookmarks, and back off after a response without a line. */
const isJavaScriptClient = (request: HttpRequest): boolean =>
  (request.headers['user-agent'] ?? '').startsWith('undici') && (request.headers['accept'] ?? '*/*') === '*/*';
