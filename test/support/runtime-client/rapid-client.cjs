/**
 * What aws-lambda-ric asks of its native part: to send the result of an invocation. It reads events itself, over HTTP
 * (AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1).
 * Source: AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".
 */
const { request } = require('node:http');

/** The native part has no outcome either. */
function post(path, body, headers) {
  const url = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation/${path}`;
  const sent = request(url, { method: 'POST', agent: false, headers }, (response) => response.resume());
  sent.on('error', (error) => {
    throw error;
  });
  sent.end(body);
}

exports.next = () => {
  throw new Error('events are read over HTTP');
};
exports.done = (id, body) => post(`${id}/response`, body, { 'content-type': 'application/json' });
exports.error = (id, body, xRayCause) =>
  post(`${id}/error`, body, {
    'content-type': 'application/json',
    'lambda-runtime-function-xray-error-cause': xRayCause,
  });
