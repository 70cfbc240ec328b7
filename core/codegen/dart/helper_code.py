"""Shared helpers of a Dart client. A file contains only the helpers that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.codegen.dart.models import SUBSCRIPTION
from rowcall.core.codegen.options import DartOptions


@dataclass(frozen=True, slots=True)
class Needs:
    """What the functions of a file use. query, segments: encoding of query strings and of path values. requests:
    sending without files. uploads: sending of files. status: results with the HTTP status. events: event streams."""

    query: bool = False
    segments: bool = False
    requests: bool = False
    uploads: bool = False
    status: bool = False
    events: bool = False
    json: bool = False
    """The functions themselves need `dart:convert`."""


def imports(needs: Needs) -> Iterator[str]:
    if needs.events:
        yield "import 'dart:async';"
    if needs.json or needs.events or needs.query or needs.status or needs.uploads:
        yield "import 'dart:convert';"
    if needs.events:
        yield "import 'dart:math';"
    yield ""
    yield "import 'package:http/http.dart' as http;"


def helper_code(needs: Needs, options: DartOptions) -> Iterator[str]:
    """Yield the source of each helper that a file uses, beginning with the public variable `httpClient`."""
    yield CLIENT
    if needs.requests:
        yield SEND
    if needs.uploads:
        yield UPLOAD
    if needs.requests or needs.uploads:
        yield SEND_REQUEST
    if needs.query:
        yield QUERY
    if needs.segments:
        yield SEGMENT
    if needs.status:
        yield STATUS.replace("ApiError", options.error_name)
    if needs.events:
        yield EVENTS.replace("SseSubscription", SUBSCRIPTION)


CLIENT = """/// Sends all requests if it is set, for example by a test. It is never closed.
http.Client? httpClient;"""

SEND = """Future<http.Response> _send(
  String method,
  Uri uri, {
  Map<String, String>? headers,
  String? body,
  http.Request Function(http.Request request)? parseRequest,
}) async {
  final request = http.Request(method, uri);
  if (headers != null) {
    request.headers.addAll(headers);
  }
  if (body != null) {
    request.body = body;
  }
  return _sendRequest(request, parseRequest);
}"""

UPLOAD = """class _UploadRequest extends http.MultipartRequest {
  final void Function(int loaded, int total)? _progress;

  _UploadRequest(Uri uri, this._progress) : super('POST', uri);

  @override
  http.ByteStream finalize() {
    final bytes = super.finalize();
    final progress = _progress;
    if (progress == null) {
      return bytes;
    }
    final total = contentLength;
    var loaded = 0;
    return http.ByteStream(
      bytes.map((chunk) {
        loaded += chunk.length;
        progress(loaded, total);
        return chunk;
      }),
    );
  }
}

Future<http.Response> _upload(
  Uri uri,
  List<http.MultipartFile> files, {
  Map<String, String>? headers,
  void Function(int loaded, int total)? progress,
  http.MultipartRequest Function(http.MultipartRequest request)? parseRequest,
}) async {
  if (files.isEmpty) {
    throw ArgumentError('No files to upload');
  }
  final http.MultipartRequest request = _UploadRequest(uri, progress);
  if (headers != null) {
    request.headers.addAll(headers);
  }
  request.files.addAll(files);
  return _sendRequest(request, parseRequest);
}"""

SEND_REQUEST = """Future<http.Response> _sendRequest<T extends http.BaseRequest>(
  T request,
  T Function(T request)? parseRequest,
) async {
  final client = httpClient ?? http.Client();
  try {
    return await http.Response.fromStream(
      await client.send(parseRequest == null ? request : parseRequest(request)),
    );
  } finally {
    if (httpClient == null) {
      client.close();
    }
  }
}"""

QUERY = """String _query(
  Map<String, dynamic> values, [
  String nullText = '',
  Set<String> json = const {},
]) {
  final parts = <String>[];
  values.forEach((key, value) {
    final listed = value is List && !json.contains(key);
    for (final item in listed ? value as List<dynamic> : [value]) {
      final text = item is Map || item is List
          ? jsonEncode(item)
          : '${item ?? nullText}';
      parts.add('$key=${Uri.encodeComponent(text)}');
    }
  });
  return '?${parts.join('&')}';
}"""

SEGMENT = """String _segment(Object? value, [String nullText = '']) =>
    Uri.encodeComponent('${value ?? nullText}');"""

STATUS = """bool _isOk(http.Response response) =>
    response.statusCode >= 200 && response.statusCode < 300;

ApiError? _error(http.Response response) {
  if (_isOk(response) || response.bodyBytes.isEmpty) {
    return null;
  }
  try {
    return ApiError.fromJson(
      jsonDecode(utf8.decode(response.bodyBytes)) as Map<String, dynamic>,
    );
  } on FormatException {
    return ApiError(
      status: response.statusCode,
      title: response.reasonPhrase ?? '',
    );
  }
}"""

EVENTS = """class SseSubscription {
  final http.Client _client = httpClient ?? http.Client();
  final bool _owned = httpClient == null;
  StreamSubscription<String>? _lines;
  bool _closed = false;

  SseSubscription._(
    String url,
    void Function(String message) onMessage,
    void Function(Object error)? onError,
    Map<String, String> headers,
  ) {
    _listen(url, onMessage, onError, headers);
  }

  Future<void> _listen(
    String url,
    void Function(String message) onMessage,
    void Function(Object error)? onError,
    Map<String, String> headers,
  ) async {
    void report(Object error) {
      if (!_closed) {
        onError?.call(error);
      }
    }

    final request = http.Request('GET', Uri.parse(url));
    request.headers.addAll(headers);
    request.headers['Accept'] = 'text/event-stream';
    final http.StreamedResponse response;
    try {
      response = await _client.send(request);
    } on http.ClientException catch (error) {
      report(error);
      return;
    }
    if (_closed) {
      return;
    }
    if (response.statusCode < 200 || response.statusCode >= 300) {
      report(
        http.ClientException(
          'the event stream was refused with status ${response.statusCode}',
          request.url,
        ),
      );
      response.stream.listen(null).cancel();
      close();
      return;
    }
    final data = <String>[];
    _lines = response.stream
        .transform(utf8.decoder)
        .transform(const LineSplitter())
        .listen((line) {
      if (line.startsWith('data:')) {
        final text = line.substring(5);
        data.add(text.startsWith(' ') ? text.substring(1) : text);
      } else if (line.isEmpty && data.isNotEmpty) {
        onMessage(data.join('\\n'));
        data.clear();
      }
    }, onError: report);
  }

  /// Ends the stream of events.
  void close() {
    _closed = true;
    _lines?.cancel();
    if (_owned) {
      _client.close();
    }
  }
}

String _executionId() {
  final random = Random.secure();
  final bytes = List<int>.generate(16, (_) => random.nextInt(256));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  final hex = [
    for (final byte in bytes) byte.toRadixString(16).padLeft(2, '0'),
  ].join();
  return '${hex.substring(0, 8)}-${hex.substring(8, 12)}-'
      '${hex.substring(12, 16)}-${hex.substring(16, 20)}-${hex.substring(20)}';
}"""


def status_classes(options: DartOptions) -> Iterator[str]:
    """Yield the source of the classes of errors and of results with status, which belong to the models."""
    yield f"""class {options.error_name} {{
  final int status;
  final String title;
  final String? detail;
  final String? hint;

  /// The invalid values of the request, each with `parameter`, `path` and `message`.
  final List<Map<String, dynamic>> errors;

  const {options.error_name}({{
    required this.status,
    required this.title,
    this.detail,
    this.hint,
    this.errors = const [],
  }});

  factory {options.error_name}.fromJson(Map<String, dynamic> json) {{
    return {options.error_name}(
      status: (json['status'] as num?)?.toInt() ?? 0,
      title: json['title'] as String? ?? '',
      detail: json['detail'] as String?,
      hint: json['hint'] as String?,
      errors: (json['errors'] as List<dynamic>? ?? const [])
          .whereType<Map<String, dynamic>>()
          .toList(),
    );
  }}
}}"""
    yield f"""class {options.result_name}<T> {{
  final int status;
  final T? response;
  final {options.error_name}? error;

  const {options.result_name}({{required this.status, this.response, this.error}});

  bool get ok => status >= 200 && status < 300;
}}"""
