//! Bodies that are forms with files, `multipart/form-data`.

use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest, Multipart};
use axum::http::{Request, StatusCode};

use super::MAX_BODY_BYTES;
use super::problem::Problem;
use super::transfer::{self, in_time};

/// A form, whose parts come one after another.
pub(super) struct Form(Multipart);

/// A part of a form, with all of its contents.
pub(super) struct Part {
    pub(super) name: String,
    /// Set for a file.
    pub(super) file_name: Option<String>,
    /// The media type of a file.
    pub(super) kind: Option<String>,
    pub(super) contents: Vec<u8>,
}

impl Form {
    pub(super) async fn of(request: Request<Body>) -> Result<Self, Problem> {
        let form = Multipart::from_request(request, &()).await;
        let invalid =
            |text: String| Problem::unreadable(format!("the body is no form with files: {text}"));
        form.map(Self).map_err(|error| invalid(error.body_text()))
    }

    /// Reads the next part.
    pub(super) async fn next(&mut self) -> Result<Option<Part>, Problem> {
        let next = in_time(self.0.next_field()).await?;
        let Some(field) = next.map_err(|error| failed(&error))? else { return Ok(None) };
        Part::read(field).await.map(Some)
    }
}

impl Part {
    async fn read(mut field: Field<'_>) -> Result<Self, Problem> {
        let name = field.name().unwrap_or_default().to_owned();
        let (file_name, kind) = (field.file_name(), field.content_type());
        let [file_name, kind] = [file_name, kind].map(|text| text.map(str::to_owned));
        let mut contents = Vec::new();
        while let Some(chunk) = in_time(field.chunk()).await?.map_err(|error| failed(&error))? {
            contents.extend_from_slice(&chunk);
        }
        Ok(Self { name, file_name, kind, contents })
    }
}

fn failed(error: &MultipartError) -> Problem {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(MAX_BODY_BYTES),
        _ => transfer::problem(error),
    }
}
