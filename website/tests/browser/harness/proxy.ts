/** A proxy between the browser and the service that breaks connections or adds headers. */

import {createServer, request as send, type IncomingHttpHeaders} from 'node:http';
import type {AddressInfo} from 'node:net';
import {onTestFinished} from 'vitest';

import type {Service} from './service';

/** The changes that the proxy makes. */
export interface Changes {
  /** Breaks the connection of an answer after so many bytes of its body. */
  cutAnswersAfter?: () => number | undefined;
  /** Returns headers that are added to a page. */
  addToPage?: (html: string) => Record<string, string>;
}

/**
 * Starts a proxy for the current test and returns the address of the book behind it.
 *
 * The service sees the address of the proxy as its own, like behind any reverse proxy that passes
 * the host on.
 */
export async function startProxy(service: Service, changes: Changes): Promise<string> {
  const target = new URL(service.book);
  const server = createServer((request, response) => {
    const headers: IncomingHttpHeaders = {...request.headers};
    delete headers['accept-encoding'];
    const onward = send(
      {host: target.hostname, port: target.port, method: request.method, path: request.url, headers},
      (answer) => {
        const type = answer.headers['content-type'] ?? '';
        const limit = request.url === '/v1/answers' ? changes.cutAnswersAfter?.() : undefined;
        if (type.startsWith('text/html') && changes.addToPage) {
          const pieces: Buffer[] = [];
          answer.on('data', (piece: Buffer) => pieces.push(piece));
          answer.on('end', () => {
            const page = Buffer.concat(pieces);
            const added = changes.addToPage?.(page.toString()) ?? {};
            response.writeHead(answer.statusCode ?? 500, {...answer.headers, ...added});
            response.end(page);
          });
          return;
        }
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        let sent = 0;
        answer.on('data', (piece: Buffer) => {
          const part = limit === undefined ? piece : piece.subarray(0, Math.max(0, limit - sent));
          sent += piece.length;
          response.write(part, () => {
            if (limit !== undefined && sent >= limit) {
              response.destroy();
              onward.destroy();
            }
          });
        });
        answer.on('end', () => response.end());
        answer.on('error', () => response.destroy());
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const {port} = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}${target.pathname}`;
}
