import { type AddressInfo, createServer, type Socket } from 'node:net';

/** Runs `work` while a server on loopback accepts connections and never answers. */
export async function withSilentServer(work: (url: string) => Promise<void>): Promise<void> {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    silent.close();
  }
}
